// Counts of values: histc, bincount. They have no derivative.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// (x): how many elements of x are in each of `bins` equal parts of [min, max]; of the range of x if min is max.
struct Histc {
  struct Attrs {
    int64_t bins;
    Scalar min, max;
    void visit(AttrVisitor& v) {
      v.field("bins", bins);
      v.field("min", min);
      v.field("max", max);
    }
  };
  static constexpr std::string_view name = "histc", doc = "histogram of equal bins",
                                    no_derivative = "a count is constant almost everywhere";
  static constexpr std::string_view example = "f32[8] {bins=4, min=0, max=1} : f32[4]";
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void batch(BatchContext& c);
};

using CountOps = OpList<Histc>;

}  // namespace ops

/// The number of elements in each of `bins` equal parts of [min, max], of the input's dtype. `max` itself is in the
/// last part; what is outside, NaN included, is not counted. If min is max, the range is that of the elements (from one
/// below to one above if these are equal). Errors: dtype_mismatch unless floating; bad_argument for bins < 1, min >
/// max, and a range that is not finite.
Tensor histc(Operand input, int64_t bins = 100, Scalar min = 0, Scalar max = 0);
/// How often each number from 0 on occurs in `input`, one dim of integers that are not negative: int64 [size], where
/// size is the largest number + 1, at least minlength. With `weights` of the input's shape, the sum of their entries
/// instead: float32 if they are, else float64. Reads data, so it runs outside of recorded functions. Errors: bad_dim,
/// dtype_mismatch, shape_mismatch, bad_argument.
Tensor bincount(Operand input, const Tensor& weights = {}, int64_t minlength = 0);

}  // namespace retrograd
#pragma GCC visibility pop
