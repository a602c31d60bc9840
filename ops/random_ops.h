// Random tensors: rand, randn, randint, bernoulli, dropout.
//
// A draw is a pure function of its attributes: seed and offset name a place in the Philox stream (engine/philox.h), and element i of the
// result depends on (seed, offset, i) alone. The public functions reserve one offset of the default generator for each draw
// (engine/random.h). So a draw does not depend on threads, and dropout need not save its mask: its transpose is the same op with the same
// seed and offset, on the gradient. Both numbers are Scalars, hence inputs of a captured graph and no part of its structure.
// Limits: drawing while a backward is recorded is refused, since a replay would repeat the numbers of the capture. For a hook that draws,
// an opaque one serves.
#pragma once

#include "ops/creation.h"
#include "ops/op.h"

namespace retrograd {
namespace ops {

/// Where in the random stream a draw lies.
struct Draw {
  Scalar seed, offset;
  void visit(AttrVisitor& v) {
    v.field("seed", seed);
    v.field("offset", offset);
  }
  uint64_t seed_bits() const { return static_cast<uint64_t>(seed.to_int()); }
  uint64_t offset_bits() const { return static_cast<uint64_t>(offset.to_int()); }
};

/// The next free place of the default generator. Error(unsupported) while a graph is recorded.
Draw reserve_draw(std::string_view op, SourceLocation where);

struct Random {
  static constexpr uint32_t traits = Trait::pure | Trait::random;
};

/// A draw of a new tensor from a distribution F with two parameters, a and b.
template <class F>
struct Distribution : Random {
  struct Attrs {
    Shape size;
    Scalar a, b;
    ScalarType dtype = kFloat32;
    Draw draw;
    void visit(AttrVisitor& v) {
      v.field("size", size);
      v.field(F::name_of_a, a);
      v.field(F::name_of_b, b);
      v.field("dtype", dtype);
      draw.visit(v);
    }
  };
  static constexpr int8_t arity = 0;
  static constexpr std::string_view no_derivative = "it has no operands";
  static void infer(const Call& call, TensorImpl* const* outputs) {
    const Attrs& attrs = call.attrs_as<Attrs>();
    outputs[0]->set_type(attrs.dtype, kCPU, attrs.size);
  }
};

/// a + (b - a) u, u uniform in [0, 1).
struct Uniform : Distribution<Uniform> {
  static constexpr std::string_view name = "uniform", doc = "uniform random numbers";
  static constexpr std::string_view name_of_a = "from", name_of_b = "to";
};

/// a + b z, z standard normal.
struct Normal : Distribution<Normal> {
  static constexpr std::string_view name = "normal", doc = "normal random numbers";
  static constexpr std::string_view name_of_a = "mean", name_of_b = "std";
};

/// Integers from a up to, not including, b.
struct RandInt : Distribution<RandInt> {
  static constexpr std::string_view name = "randint", doc = "uniform random integers";
  static constexpr std::string_view name_of_a = "low", name_of_b = "high";
};

/// 1 with the probability that the operand gives, else 0. The result does not depend smoothly on it: PyTorch's gradient, zero.
struct Bernoulli : Random {
  struct Attrs {
    Draw draw;
    void visit(AttrVisitor& v) { draw.visit(v); }
  };
  static constexpr std::string_view name = "bernoulli",
                                    doc = "1 with the probability given by the operand, else 0";
  static constexpr int8_t arity = 1;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
  static void jvp(TangentContext& c);
};

/// x / (1 - p) with probability 1 - p, else 0. Linear in x for a given draw.
struct Dropout : Random {
  struct Attrs {
    Scalar p;
    Draw draw;
    void visit(AttrVisitor& v) {
      v.field("p", p);
      draw.visit(v);
    }
  };
  static constexpr std::string_view name = "dropout",
                                    doc = "elements set to zero at random, the others scaled up";
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = Trait::pure | Trait::random | Trait::elementwise;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
};

using RandomOps = OpList<Uniform, Normal, RandInt, Bernoulli, Dropout>;

}  // namespace ops

// Errors: dtype_mismatch for a dtype that the draw is not made for, bad_argument for a parameter outside its domain.

/// Uniform in [0, 1); float64, float32, float16 or bfloat16.
Tensor rand(const Shape& size, TensorOptions options = {}, SourceLocation where = SourceLocation::current());
/// Standard normal, of the same dtypes.
Tensor randn(const Shape& size, TensorOptions options = {}, SourceLocation where = SourceLocation::current());
/// Integers in [low, high), int64 unless options say otherwise.
Tensor randint(int64_t low, int64_t high, const Shape& size, TensorOptions options = {kInt64},
               SourceLocation where = SourceLocation::current());
/// 0 or 1, of the shape and dtype of the probabilities p. Error(bad_argument) for a p outside [0, 1].
Tensor bernoulli(Operand p);
/// In training: each element zero with probability p, else scaled by 1 / (1 - p). Otherwise x itself. Error(bad_argument) unless 0 <= p <= 1.
Tensor dropout(Operand x, double p = 0.5, bool training = true);

/// Overwrites `x`, whatever its strides, and raises its version; records nothing. What nn::init is made of.
void fill_uniform(const Tensor& x, double from, double to, SourceLocation where = SourceLocation::current());
void fill_normal(const Tensor& x, double mean, double std, SourceLocation where = SourceLocation::current());

}  // namespace retrograd
