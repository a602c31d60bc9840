// Random positions: randperm and multinomial. Like all draws, they depend only on their attributes and operands
// (ops/random_ops.h). A permutation is computed by one sequence of exchanges, each of which uses the random number of
// its own position in the stream. A sample of multinomial uses the number of its position in the result, or, without
// replacement, each category uses that of its position in the weights.
#pragma once

#include "ops/random_ops.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// Error(bad_argument) for an n whose numbers the dtype cannot distinguish.
void check_permuted(std::string_view op, int64_t n, ScalarType dtype, SourceLocation where);

/// The integers below n in random order.
struct RandPerm : NewDraw {
  struct Attrs {
    Dim n;
    ScalarType dtype = kInt64;
    Draw draw;
    void visit(AttrVisitor& v) {
      v.field("n", n);
      v.field("dtype", dtype);
      draw.visit(v);
    }
  };
  static constexpr std::string_view name = "randperm", doc = "a random permutation";
  static constexpr bool takes(ScalarType dtype) { return dtype != kBool && is_drawn(dtype); }
  static constexpr std::string_view example = "{n=3, dtype=f32, seed=1, offset=0} : f32[3]";
  static void infer(const Call& call, TensorImpl* const* outputs) {
    const Attrs& attrs = call.attrs_as<Attrs>();
    set_drawn(call, *outputs[0], attrs.dtype, {attrs.n}, takes(attrs.dtype));
    check_permuted(name, attrs.n.hint(), attrs.dtype, call.where);
  }
};

/// Weights (n) or (m, n) -> int64 (k) or (m, k): k positions of each row, by their weights.
struct Multinomial : Random {
  struct Attrs {
    Dim samples;
    bool replacement;
    Draw draw;
    void visit(AttrVisitor& v) {
      v.field("num_samples", samples);
      v.field("replacement", replacement);
      draw.visit(v);
    }
  };
  static constexpr std::string_view name = "multinomial", doc = "places drawn by their weights",
                                    no_derivative = "it gives integers";
  static constexpr std::string_view example =
      "f32[3] {num_samples=2, replacement=true, seed=1, offset=0} : i64[2]";
  static constexpr int8_t arity = 1;
  static void infer(const Call& call, TensorImpl* const* outputs);
};

using SamplingOps = OpList<RandPerm, Multinomial>;

}  // namespace ops

/// 0 .. n - 1 in random order, int64 unless options say otherwise. Error(bad_argument) for n < 0, or for an n whose
/// numbers the dtype cannot distinguish.
Tensor randperm(int64_t n, TensorOptions options = {}, SourceLocation where = SourceLocation::current());

/// `num_samples` positions of each row of `input`, whose weights need not sum to one: with replacement independently of
/// each other, else successively among the remaining ones, in the order drawn. Errors: bad_dim unless there are one or
/// two dims; bad_argument for a weight that is negative, nan or infinite, a row that sums to zero, num_samples <= 0, or
/// more samples than there are weights above zero to draw without replacement.
Tensor multinomial(Operand input, int64_t num_samples, bool replacement = false);

}  // namespace retrograd
#pragma GCC visibility pop
