// Random tensors: draws of a new tensor, draws into an existing one (Tensor::uniform_ and others), and draws whose
// parameters are tensors. Random positions (randperm and multinomial) are in ops/sampling.h, dropout in ops/dropout.h.
//
// A draw is a pure function of its attributes: seed and offset specify a position in the Philox stream
// (engine/philox.h), and element i of the result depends on (seed, offset, i) alone. The public functions reserve one
// offset of the default generator for each draw (engine/random.h). So a draw does not depend on threads. Both numbers
// are Scalars, hence inputs of a captured graph and no part of its structure. No draw depends smoothly on a parameter:
// a tensor parameter gets PyTorch's gradient, zeros; so does a value that a draw has overwritten. Limits: drawing while
// a backward is recorded is refused, since a replay would repeat the numbers of the capture. A hook that draws can be
// an opaque one.
#pragma once

#include <optional>

#include "ops/attributes.h"
#include "ops/creation.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// The position of a draw in the random stream.
struct Draw {
  Scalar seed, offset;
  void visit(AttrVisitor& v) {
    v.field("seed", seed);
    v.field("offset", offset);
  }
  uint64_t seed_bits() const { return static_cast<uint64_t>(seed.to_int()); }
  uint64_t offset_bits() const { return static_cast<uint64_t>(offset.to_int()); }
};

/// The next free position of the default generator. Error(unsupported) while a graph is recorded.
Draw reserve_draw(std::string_view op, SourceLocation where);

/// The dtypes of draws from continuous distributions, and of other draws.
constexpr bool is_drawn_floating(ScalarType dtype) { return is_floating(dtype) && !is_float8(dtype); }
constexpr bool is_drawn(ScalarType dtype) { return !is_float8(dtype); }

struct Random {
  static constexpr uint32_t traits = Trait::pure | Trait::random;
  static constexpr auto batch = batch_draw;
};

/// A draw without operands.
struct NewDraw : Random {
  static constexpr int8_t arity = 0;
  static constexpr std::string_view no_derivative = "it has no operands";
  /// The type of a draw. Error(dtype_mismatch) unless `is_drawn`, of the attribute dtype.
  static void set_drawn(const Call& call, TensorImpl& out, ScalarType dtype, const Shape& size, bool is_drawn,
                        Device device = kCPU) {
    if (!is_drawn || dtype == ScalarType::Undefined)
      fail_call(call, Category::dtype_mismatch, "it does not draw numbers of this dtype");
    check_sizes(call, size);
    out.set_type(dtype, device, size);
  }
};

/// Checks of public functions and type rules. Error(bad_argument) unless 0 <= p <= 1; unless std >= 0; unless a rate is
/// positive; unless low <= high and both bounds and their difference are in the range of a floating dtype; unless low <
/// high and a dtype represents the integers in [low, high).
void check_probability(std::string_view op, double p, SourceLocation where);
void check_deviation(std::string_view op, double std, SourceLocation where);
void check_rate(std::string_view op, double rate, SourceLocation where);
void check_range(std::string_view op, double low, double high, ScalarType dtype, SourceLocation where);
void check_integers(std::string_view op, int64_t low, int64_t high, ScalarType dtype, SourceLocation where);

/// A draw of a new tensor from a distribution F with two parameters, a and b, which F::check(call, a, b, dtype) checks.
/// Symbols count as their values at capture.
template <class F>
struct Distribution : NewDraw {
  struct Attrs {
    Shape size;
    Scalar a, b;
    ScalarType dtype = kFloat32;
    Draw draw;
    Device device = kCPU;
    void visit(AttrVisitor& v) {
      v.field("size", size);
      v.field(F::name_of_a, a);
      v.field(F::name_of_b, b);
      v.field("dtype", dtype);
      draw.visit(v);
      v.field("device", device);
    }
  };
  static void infer(const Call& call, TensorImpl* const* outputs) {
    const Attrs& attrs = call.attrs_as<Attrs>();
    set_drawn(call, *outputs[0], attrs.dtype, attrs.size, F::takes(attrs.dtype), attrs.device);
    F::check(call, attrs.a.number(), attrs.b.number(), attrs.dtype);
  }
};

/// The same with one parameter.
template <class F>
struct OneParameter : NewDraw {
  struct Attrs {
    Shape size;
    Scalar a;
    ScalarType dtype = kFloat32;
    Draw draw;
    Device device = kCPU;
    void visit(AttrVisitor& v) {
      v.field("size", size);
      v.field(F::name_of_a, a);
      v.field("dtype", dtype);
      draw.visit(v);
      v.field("device", device);
    }
  };
  static void infer(const Call& call, TensorImpl* const* outputs) {
    const Attrs& attrs = call.attrs_as<Attrs>();
    set_drawn(call, *outputs[0], attrs.dtype, attrs.size, F::takes(attrs.dtype), attrs.device);
    F::check(call, attrs.a.number());
  }
};

/// a + (b - a) u, u uniform in [0, 1); below b even if rounding would give b.
struct Uniform : Distribution<Uniform> {
  static constexpr std::string_view name = "uniform", doc = "uniform random numbers";
  static constexpr std::string_view example =
      "{size=[2,3], from=0.0, to=1.0, dtype=f32, seed=1, offset=0} : f32[2,3]";
  static constexpr std::string_view name_of_a = "from", name_of_b = "to";
  static constexpr auto takes = is_drawn_floating;
  static void check(const Call& call, Number from, Number to, ScalarType dtype) {
    check_range(name, from.as_double(), to.as_double(), dtype, call.where);
  }
};

/// a + b z, z standard normal.
struct Normal : Distribution<Normal> {
  static constexpr std::string_view name = "normal", doc = "normal random numbers";
  static constexpr std::string_view example =
      "{size=[2,3], mean=0.0, std=1.0, dtype=f32, seed=1, offset=0} : f32[2,3]";
  static constexpr std::string_view name_of_a = "mean", name_of_b = "std";
  static constexpr auto takes = is_drawn_floating;
  static void check(const Call& call, Number, Number std, ScalarType) {
    check_deviation(name, std.as_double(), call.where);
  }
};

/// Integers from a up to, not including, b, in any dtype.
struct RandInt : Distribution<RandInt> {
  static constexpr std::string_view name = "randint", doc = "uniform random integers";
  static constexpr std::string_view example =
      "{size=[2,3], low=0, high=2, dtype=f32, seed=1, offset=0} : f32[2,3]";
  static constexpr std::string_view name_of_a = "low", name_of_b = "high";
  static constexpr auto takes = is_drawn;
  static void check(const Call& call, Number low, Number high, ScalarType dtype) {
    check_integers(name, low.as_int(), high.as_int(), dtype, call.where);
  }
};

/// -log(1 - u) / a, u uniform in [0, 1).
struct Exponential : OneParameter<Exponential> {
  static constexpr std::string_view name = "exponential", doc = "exponentially distributed random numbers";
  static constexpr std::string_view example =
      "{size=[2,3], lambd=1.0, dtype=f32, seed=1, offset=0} : f32[2,3]";
  static constexpr std::string_view name_of_a = "lambd";
  static constexpr auto takes = is_drawn_floating;
  static void check(const Call& call, Number rate) { check_rate(name, rate.as_double(), call.where); }
};

/// 1 with probability a, else 0, in any dtype.
struct BernoulliNumber : OneParameter<BernoulliNumber> {
  static constexpr std::string_view name = "bernoulli_number", doc = "1 with a probability, else 0";
  static constexpr std::string_view example = "{size=[2,3], p=0.5, dtype=f32, seed=1, offset=0} : f32[2,3]";
  static constexpr std::string_view name_of_a = "p";
  static constexpr auto takes = is_drawn;
  static void check(const Call& call, Number p) { check_probability(name, p.as_double(), call.where); }
};

/// 1 with the probability in the operand, else 0.
struct Bernoulli : Random {
  struct Attrs {
    Draw draw;
    void visit(AttrVisitor& v) { draw.visit(v); }
  };
  static constexpr std::string_view name = "bernoulli",
                                    doc = "1 with the probability given by the operand, else 0";
  static constexpr std::string_view example = "f32[2,3] {seed=1, offset=0} : f32[2,3]";
  static constexpr int8_t arity = 1;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
  static void jvp(TangentContext& c);
};

/// mean + std z, z standard normal. Operands mean and std, which broadcast; a null one means the number in the
/// attributes.
struct NormalAround : Random {
  struct Attrs {
    Scalar mean, std;
    Draw draw;
    void visit(AttrVisitor& v) {
      v.field("mean", mean);
      v.field("std", std);
      draw.visit(v);
    }
  };
  static constexpr std::string_view name = "normal_around",
                                    doc = "normal random numbers of given means and deviations";
  static constexpr std::string_view operands = "mean, std";
  static constexpr std::string_view example =
      "f32[2,3], f32[2,3] {mean=0, std=0, seed=1, offset=0} : f32[2,3]";
  static constexpr int8_t arity = 2;
  static constexpr uint8_t optional = 3;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// float32 as bfloat16: one of the two neighbours, the nearer the likelier, so that the expected value is the operand.
/// 16 random bits are added to those that are cut off (bits of dropout's choices). What is not finite stays so.
struct StochasticRound : Random {
  struct Attrs {
    Draw draw;
    void visit(AttrVisitor& v) { draw.visit(v); }
  };
  static constexpr std::string_view name = "stochastic_round",
                                    doc = "rounded to bfloat16 up or down at random, right on average";
  static constexpr std::string_view example = "f32[2,3] {seed=1, offset=0} : bf16[2,3]";
  static constexpr int8_t arity = 1;
  static constexpr std::string_view no_derivative = "rounding is a step function";
  static void infer(const Call& call, TensorImpl* const* outputs);
};

using RandomOps =
    OpList<Uniform, Normal, RandInt, Exponential, BernoulliNumber, Bernoulli, NormalAround, StochasticRound>;

/// Common checks of sizes and options of draws. Errors: bad_argument, dtype_mismatch unless `dtype_ok`.
void check_request(std::string_view op, const Shape& size, const TensorOptions& options, bool dtype_ok,
                   SourceLocation where);
/// The end of the range of integers from 0 on that a dtype represents without a gap; for int64 the last one is omitted.
int64_t end_of_integers(ScalarType dtype);

}  // namespace ops

// Errors: dtype_mismatch for a dtype that the draw does not support, bad_argument for a parameter outside its domain.

/// Uniform in [0, 1); float64, float32, float16 or bfloat16.
Tensor rand(const Shape& size, TensorOptions options = {}, SourceLocation where = SourceLocation::current());
/// Standard normal, of the same dtypes.
Tensor randn(const Shape& size, TensorOptions options = {}, SourceLocation where = SourceLocation::current());
/// Integers in [low, high), int64 unless options say otherwise; any dtype but float8.
Tensor randint(int64_t low, int64_t high, const Shape& size, TensorOptions options = {},
               SourceLocation where = SourceLocation::current());
Tensor randint(int64_t high, const Shape& size, TensorOptions options = {},
               SourceLocation where = SourceLocation::current());
/// Of the size, dtype and device of `input`, as far as options do not say otherwise; no history.
Tensor rand_like(Operand input, TensorOptions options = {});
Tensor randn_like(Operand input, TensorOptions options = {});
Tensor randint_like(Operand input, int64_t low, int64_t high, TensorOptions options = {});
Tensor randint_like(Operand input, int64_t high, TensorOptions options = {});

/// 0 or 1, of the shape and dtype of the probabilities p. Error(bad_argument) for a p outside [0, 1].
Tensor bernoulli(Operand p);
/// 0 or 1, of the shape and dtype of `input`, 1 with probability p.
Tensor bernoulli(Operand input, double p);
/// Normal with means and standard deviations that are tensors, which broadcast, or numbers; in the dtype of `mean`, or
/// of `std` if that is the only tensor. Error(bad_argument) for a negative std.
Tensor normal(Operand mean, Operand std);
/// The same for two numbers, as a new tensor.
Tensor normal(double mean, double std, const Shape& size, TensorOptions options = {},
              SourceLocation where = SourceLocation::current());

/// x, float32, as bfloat16, rounded up or down at random such that the expected value is x. So a sum of many small
/// changes is right on average, where rounding to nearest would lose each of them (Gupta et al., Deep Learning with
/// Limited Numerical Precision, 2015). Not differentiable. Error(dtype_mismatch) for another dtype.
Tensor stochastic_round(Operand x);

/// Overwrites `x`, whatever its strides, and raises its version; records nothing. nn::init is made of it.
void fill_uniform(const Tensor& x, double from, double to, SourceLocation where = SourceLocation::current());
void fill_normal(const Tensor& x, double mean, double std, SourceLocation where = SourceLocation::current());
/// The same with stochastic_round(value); x is bfloat16 and has its shape.
void fill_stochastic_round(const Tensor& x, const Tensor& value,
                           SourceLocation where = SourceLocation::current());

}  // namespace retrograd
#pragma GCC visibility pop
