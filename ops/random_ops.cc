// Type rules, derivatives and public functions of ops/random_ops.h.
#include "ops/random_ops.h"

#include <utility>

#include <fmt/format.h>

#include "engine/random.h"
#include "engine/runner.h"
#include "ops/reduce.h"

namespace retrograd {
namespace ops {

Draw reserve_draw(std::string_view op, SourceLocation where) {
  if (Emitter::current().is_symbolic())
    fail(Category::unsupported, op,
         "random numbers cannot be drawn while a backward is recorded. Hint: draw in an opaque hook", where);
  const GeneratorState state = default_generator().reserve();
  return {static_cast<int64_t>(state.seed), static_cast<int64_t>(state.offset)};
}

void Bernoulli::infer(const Call& call, TensorImpl* const* outputs) {
  check_floating(call);
  const TensorImpl& p = *call.operands[0];
  outputs[0]->set_type(p.dtype(), p.device(), p.shape());
}

Tensor Bernoulli::transpose(RuleContext& c, int, const Tensor&) { return zeros_of(c.type(0), c.where()); }
void Bernoulli::jvp(TangentContext& c) { c.give(0, zeros_of(c.out_type(), c.where())); }

void Dropout::infer(const Call& call, TensorImpl* const* outputs) { Bernoulli::infer(call, outputs); }

// The same draw applied to the gradient: the op is diagonal.
Tensor Dropout::transpose(RuleContext& c, int, const Tensor& g) {
  return emit<Dropout>({g.get()}, c.attrs<Attrs>(), c.where());
}

namespace {

void check_request(std::string_view op, const Shape& size, const TensorOptions& options, bool dtype_ok,
                   SourceLocation where) {
  if (!(options.device == kCPU))
    fail(Category::bad_argument, op, fmt::format("there is no device {}", to_string(options.device)), where);
  for (Dim d : size)
    if (d.hint() < 0)
      fail(Category::bad_argument, op, fmt::format("a size is negative: {}", to_string(size)), where);
  if (!dtype_ok)
    fail(Category::dtype_mismatch, op, fmt::format("it does not draw {}", name(options.dtype)), where);
}

bool is_drawn_floating(ScalarType dtype) { return is_floating(dtype) && !is_float8(dtype); }

template <class Op>
Tensor draw(std::string_view op, const Shape& size, Scalar a, Scalar b, const TensorOptions& options,
            SourceLocation where) {
  Tensor result = emit<Op>({}, {size, a, b, options.dtype, reserve_draw(op, where)}, where);
  if (options.requires_grad) result.requires_grad_(true, where);
  return result;
}

template <class Op>
void draw_into(const Tensor& x, double a, double b, std::string_view op, SourceLocation where) {
  if (!is_drawn_floating(x.dtype()))
    fail(Category::dtype_mismatch, op, fmt::format("it does not draw {}", name(x.dtype())), where);
  x.raw_data(where);  // refuses a value of a graph
  typename Op::Attrs attrs{x.impl().shape(), a, b, x.dtype(), reserve_draw(op, where)};
  run_into({&info<Op>, {}, &attrs, effective_location(where), 1}, x);
}

}  // namespace
}  // namespace ops

Tensor rand(const Shape& size, TensorOptions options, SourceLocation where) {
  ops::check_request("rand", size, options, ops::is_drawn_floating(options.dtype), where);
  return ops::draw<ops::Uniform>("rand", size, 0.0, 1.0, options, where);
}

Tensor randn(const Shape& size, TensorOptions options, SourceLocation where) {
  ops::check_request("randn", size, options, ops::is_drawn_floating(options.dtype), where);
  return ops::draw<ops::Normal>("randn", size, 0.0, 1.0, options, where);
}

Tensor randint(int64_t low, int64_t high, const Shape& size, TensorOptions options, SourceLocation where) {
  ops::check_request("randint", size, options, is_integral(options.dtype, false), where);
  if (low >= high)
    fail(Category::bad_argument, "randint", fmt::format("low {} must be below high {}", low, high), where);
  dispatch(options.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      if (!std::in_range<T>(low) || !std::in_range<T>(high - 1))
        fail(Category::bad_argument, "randint",
             fmt::format("[{}, {}) does not fit into {}", low, high, name(options.dtype)), where);
  });
  return ops::draw<ops::RandInt>("randint", size, low, high, options, where);
}

Tensor bernoulli(Operand p) {
  return ops::emit<ops::Bernoulli>({p.tensor().get()}, {ops::reserve_draw("bernoulli", p.where())},
                                   p.where());
}

Tensor dropout(Operand x, double p, bool training) {
  if (!(p >= 0 && p <= 1))
    fail(Category::bad_argument, "dropout", fmt::format("the probability {} is outside [0, 1]", p),
         x.where());
  if (!training || p == 0) return x.tensor();
  return ops::emit<ops::Dropout>({x.tensor().get()}, {p, ops::reserve_draw("dropout", x.where())}, x.where());
}

void fill_uniform(const Tensor& x, double from, double to, SourceLocation where) {
  ops::draw_into<ops::Uniform>(x, from, to, "fill_uniform", where);
}

void fill_normal(const Tensor& x, double mean, double std, SourceLocation where) {
  ops::draw_into<ops::Normal>(x, mean, std, "fill_normal", where);
}

}  // namespace retrograd
