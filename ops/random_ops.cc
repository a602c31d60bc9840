// Type rules, derivatives and public functions of ops/random_ops.h.
#include "ops/random_ops.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "engine/batching.h"
#include "engine/named_call.h"
#include "engine/random.h"
#include "engine/recording.h"
#include "engine/runner.h"
#include "ops/copy.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace ops {

Draw reserve_draw(std::string_view op, SourceLocation where) {
  if (Emitter::current().values() == Emitter::Values::of_backward)
    fail(Category::unsupported, op,
         "random numbers cannot be drawn while a backward is recorded. Hint: draw in an opaque hook", where);
  const uint64_t positions = Batching::positions_to_draw(op, where);
  Scalar place[2];
  read_live_numbers(place, {[positions](std::span<Scalar> out) {
                              const GeneratorState state = default_generator().reserve(positions);
                              out[0] = static_cast<int64_t>(state.seed);
                              out[1] = static_cast<int64_t>(state.offset);
                            },
                            [positions](std::span<const Number> place, bool was_used) {
                              if (was_used) return;
                              default_generator().give_back(
                                  {static_cast<uint64_t>(place[0].i), static_cast<uint64_t>(place[1].i)},
                                  positions);
                            }});
  Batching::note_draw({place[0], place[1]});
  return {place[0], place[1]};
}

void Bernoulli::infer(const Call& call, TensorImpl* const* outputs) {
  check_floating(call);
  const TensorImpl& p = *call.operands[0];
  outputs[0]->set_type(p.dtype(), p.device(), p.shape());
}

Tensor Bernoulli::transpose(RuleContext& c, int, const Tensor&) { return zeros_of(c.type(0), c.where()); }
void Bernoulli::jvp(TangentContext& c) { c.give(0, zeros_of(c.out_type(), c.where())); }

void NormalAround::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl *mean = call.operands[0], *std = call.operands[1];
  if (!mean && !std) fail_call(call, Category::bad_argument, "at least one operand must be a tensor");
  if (!std) check_deviation(name, call.attrs_as<Attrs>().std.number().as_double(), call.where);
  const TensorImpl& first = mean ? *mean : *std;
  if (!is_drawn_floating(first.dtype()))
    fail_call(call, Category::dtype_mismatch, "it is defined for float64, float32, float16 and bfloat16");
  Shape shape = first.shape();
  if (mean && std) {
    if (mean->dtype() != std->dtype())
      fail_call(call, Category::dtype_mismatch, "operands have different dtypes");
    shape = broadcast_shapes(mean->shape(), std->shape(), name);
  }
  outputs[0]->set_type(first.dtype(), first.device(), shape);
}

void StochasticRound::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  if (x.dtype() != kFloat32) fail_call(call, Category::dtype_mismatch, "it rounds float32 to bfloat16");
  outputs[0]->set_type(kBFloat16, x.device(), x.shape());
}

void NormalAround::vjp(RuleContext& c) {
  for (int i : {0, 1})
    if (c.has_operand(i) && c.needs(i)) c.give(i, zeros_of(c.type(i), c.where()));
}
void NormalAround::jvp(TangentContext& c) { c.give(0, zeros_of(c.out_type(), c.where())); }

void check_probability(std::string_view op, double p, SourceLocation where) {
  if (!(p >= 0 && p <= 1))
    fail(Category::bad_argument, op, fmt::format("the probability {} is outside [0, 1]", p), where);
}

void check_deviation(std::string_view op, double std, SourceLocation where) {
  if (!(std >= 0)) fail(Category::bad_argument, op, fmt::format("the std {} is negative", std), where);
}

void check_rate(std::string_view op, double rate, SourceLocation where) {
  if (!(rate > 0)) fail(Category::bad_argument, op, fmt::format("lambd {} is not positive", rate), where);
}

namespace {

double largest_of(ScalarType dtype) {
  switch (dtype) {
    case kFloat64: return std::numeric_limits<double>::max();
    case kFloat16: return 65504;
    case kBFloat16: return 0x1.FEp127;
    default: return std::numeric_limits<float>::max();
  }
}

}  // namespace

void check_range(std::string_view op, double low, double high, ScalarType dtype, SourceLocation where) {
  const double largest = largest_of(dtype);
  if (!(low <= high && low >= -largest && high <= largest && high - low <= largest))
    fail(Category::bad_argument, op, fmt::format("[{}, {}) is not a range of {}", low, high, name(dtype)),
         where);
}

void check_request(std::string_view op, const Shape& size, const TensorOptions& options, bool dtype_ok,
                   SourceLocation where) {
  for (Dim d : size)
    if (d.hint() < 0)
      fail(Category::bad_argument, op, fmt::format("a size is negative: {}", to_string(size)), where);
  if (!dtype_ok)
    fail(Category::dtype_mismatch, op, fmt::format("it does not draw {}", name(options.dtype())), where);
}

void check_integers(std::string_view op, int64_t low, int64_t high, ScalarType dtype, SourceLocation where) {
  if (low >= high)
    fail(Category::bad_argument, op, fmt::format("low {} must be below high {}", low, high), where);
  dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    bool fits = true;
    if constexpr (std::is_same_v<T, bool>)
      fits = low >= 0 && high <= 2;
    else if constexpr (std::is_integral_v<T>)
      fits = std::in_range<T>(low) && std::in_range<T>(high - 1);
    else if (dtype == kFloat16)
      fits = low >= -65504 && high - 1 <= 65504;
    if (!fits)
      fail(Category::bad_argument, op, fmt::format("[{}, {}) does not fit into {}", low, high, name(dtype)),
           where);
  });
}

int64_t end_of_integers(ScalarType dtype) {
  switch (dtype) {
    case kFloat64: return (int64_t{1} << 53) + 1;
    case kFloat32: return (int64_t{1} << 24) + 1;
    case kFloat16: return (int64_t{1} << 11) + 1;
    case kBFloat16: return (int64_t{1} << 8) + 1;
    case kInt32: return int64_t{1} << 31;
    case kByte: return 256;
    case kBool: return 2;
    default: return std::numeric_limits<int64_t>::max();
  }
}

namespace {

template <class Op>
Tensor draw(std::string_view op, const Shape& size, Scalar a, Scalar b, const TensorOptions& options,
            SourceLocation where) {
  Tensor result =
      emit<Op>({}, {size, a, b, options.dtype(), reserve_draw(op, where), options.device()}, where);
  if (options.requires_grad()) result.requires_grad_(true, where);
  return result;
}

template <class Op>
void draw_into(const Tensor& x, double a, double b, std::string_view op, SourceLocation where) {
  if (!is_drawn_floating(x.impl(op, where).dtype()))
    fail(Category::dtype_mismatch, op, fmt::format("it does not draw {}", name(x.dtype())), where);
  typename Op::Attrs attrs{x.impl().shape(), a, b, x.dtype(), reserve_draw(op, where), x.device()};
  if (FunctionRecording* function = recorded_function())
    return function->write(x.impl(), emit<Op>({}, attrs, where), where);
  x.raw_data(where);  // refuses a value of a graph
  run_into({&info<Op>, {}, &attrs, effective_location(where), 1}, x);
}

}  // namespace
}  // namespace ops

Tensor rand(const Shape& size, TensorOptions options, SourceLocation where) {
  const NamedCall call("rand", where);
  ops::check_request("rand", size, options, ops::is_drawn_floating(options.dtype()), where);
  return ops::draw<ops::Uniform>("rand", size, 0.0, 1.0, options, where);
}

Tensor randn(const Shape& size, TensorOptions options, SourceLocation where) {
  const NamedCall call("randn", where);
  ops::check_request("randn", size, options, ops::is_drawn_floating(options.dtype()), where);
  return ops::draw<ops::Normal>("randn", size, 0.0, 1.0, options, where);
}

Tensor randint(int64_t low, int64_t high, const Shape& size, TensorOptions options, SourceLocation where) {
  const NamedCall call("randint", where);
  options = options.or_else(kInt64);
  ops::check_request("randint", size, options, !is_float8(options.dtype()), where);
  ops::check_integers("randint", low, high, options.dtype(), where);
  return ops::draw<ops::RandInt>("randint", size, low, high, options, where);
}

Tensor randint(int64_t high, const Shape& size, TensorOptions options, SourceLocation where) {
  const NamedCall call("randint", where);
  return randint(0, high, size, options, where);
}

namespace {
TensorOptions like(const Operand& x, const TensorOptions& options) {
  const TensorImpl& cell = x.tensor().impl();
  return options.or_else({cell.dtype(), cell.device()});
}
}  // namespace

Tensor rand_like(Operand x, TensorOptions options) {
  const NamedCall call("rand_like", x.where());
  return rand(x.tensor().impl().shape(), like(x, options), x.where());
}
Tensor randn_like(Operand x, TensorOptions options) {
  const NamedCall call("randn_like", x.where());
  return randn(x.tensor().impl().shape(), like(x, options), x.where());
}
Tensor randint_like(Operand x, int64_t low, int64_t high, TensorOptions options) {
  const NamedCall call("randint_like", x.where());
  return randint(low, high, x.tensor().impl().shape(), like(x, options), x.where());
}
Tensor randint_like(Operand x, int64_t high, TensorOptions options) {
  const NamedCall call("randint_like", x.where());
  return randint_like(x, 0, high, options);
}

Tensor bernoulli(Operand p) {
  const NamedCall call("bernoulli", p.where());
  return ops::emit<ops::Bernoulli>({p.tensor().get()}, {ops::reserve_draw("bernoulli", p.where())},
                                   p.where());
}

// Like bernoulli_(p), but a new tensor: input gets a gradient of zeros.
Tensor bernoulli(Operand x, double p) {
  const NamedCall call("bernoulli", x.where());
  ops::check_probability("bernoulli", p, x.where());
  const TensorImpl& like = x.tensor().impl();
  const Tensor drawn = ops::emit<ops::BernoulliNumber>(
      {}, {like.shape(), p, like.dtype(), ops::reserve_draw("bernoulli", x.where()), like.device()},
      x.where());
  return copy(x, drawn);
}

Tensor normal(Operand mean, Operand std) {
  const NamedCall call("normal", mean.where());
  const SourceLocation where = mean.where();
  if (mean.is_scalar() && std.is_scalar())
    fail(Category::bad_argument, "normal", "two numbers: give a size, too", where);
  if (!mean.defined() || !std.defined()) fail(Category::bad_argument, "normal", "an undefined tensor", where);
  ops::NormalAround::Attrs attrs{0.0, 1.0, ops::reserve_draw("normal", where)};
  if (mean.is_scalar()) attrs.mean = mean.scalar();
  if (std.is_scalar()) {
    attrs.std = std.scalar();
    ops::check_deviation("normal", std.scalar().to_double(), where);
  }
  Tensor deviations = std.is_scalar() ? Tensor() : std.tensor();
  if (!mean.is_scalar() && deviations.defined())
    deviations = to(Operand(deviations, where), mean.tensor().dtype());
  return ops::emit<ops::NormalAround>({mean.is_scalar() ? nullptr : mean.tensor().get(), deviations.get()},
                                      attrs, where);
}

Tensor normal(double mean, double std, const Shape& size, TensorOptions options, SourceLocation where) {
  const NamedCall call("normal", where);
  ops::check_request("normal", size, options, ops::is_drawn_floating(options.dtype()), where);
  ops::check_deviation("normal", std, where);
  return ops::draw<ops::Normal>("normal", size, mean, std, options, where);
}

void fill_uniform(const Tensor& x, double from, double to, SourceLocation where) {
  ops::draw_into<ops::Uniform>(x, from, to, "fill_uniform", where);
}

void fill_normal(const Tensor& x, double mean, double std, SourceLocation where) {
  ops::draw_into<ops::Normal>(x, mean, std, "fill_normal", where);
}

Tensor stochastic_round(Operand x) {
  return ops::emit<ops::StochasticRound>({x.tensor().get()},
                                         {ops::reserve_draw("stochastic_round", x.where())}, x.where());
}

void fill_stochastic_round(const Tensor& x, const Tensor& value, SourceLocation where) {
  using Round = ops::StochasticRound;
  if (x.dtype() != kBFloat16 || x.sizes() != value.sizes())
    fail(Category::bad_argument, Round::name,
         fmt::format("{} cannot hold {} as bfloat16", describe(x), describe(value)), where);
  Round::Attrs attrs{ops::reserve_draw(Round::name, where)};
  TensorImpl* const operands[] = {value.get()};
  if (FunctionRecording* function = recorded_function())
    return function->write(x.impl(), ops::emit<Round>({value.get()}, attrs, where), where);
  run_into({&ops::info<Round>, operands, &attrs, effective_location(where), 1}, x);
}

}  // namespace retrograd
