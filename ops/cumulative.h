// What has been found in a dim so far: its largest and smallest element (cummax, cummin), and log(sum(exp)).
//
// Sums and products are in ops/scan.h, whose recurrence the derivative of logcumsumexp uses: with y the result, the
// weight of what came before element i is a[i] = exp(y[i-1] - y[i]), that of the element itself exp(x[i] - y[i]), and
//   dy[i] = exp(x[i] - y[i]) dx[i] + a[i] dy[i-1].
// The weights are computed in float64 from x: the rounding error of a large y would be a large factor.
#pragma once

#include "ops/index_ops.h"
#include "ops/values_and_indices.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// Values, and the last positions at which they were found; the gradient goes there. NaN is the extreme once there is
/// one.
struct CumExtreme {
  using Attrs = DimAttrs;
  static constexpr int8_t arity = 1, outputs = 2;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static SaveSet saves_for(const Call&, uint64_t) { return {0, uint64_t{2}}; }  // the positions
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_dims;
};
struct CumMax : CumExtreme {
  static constexpr std::string_view name = "cummax",
                                    doc = "largest element so far along a dim, and its place";
  static constexpr std::string_view example = "f32[4,3] {dim=0} : f32[4,3], i64[4,3]";
};
struct CumMin : CumExtreme {
  static constexpr std::string_view name = "cummin",
                                    doc = "smallest element so far along a dim, and its place";
  static constexpr std::string_view example = "f32[4,3] {dim=0} : f32[4,3], i64[4,3]";
};

struct LogCumSumExp {
  using Attrs = DimAttrs;
  static constexpr std::string_view name = "logcumsumexp", doc = "log(sum(exp(x))) so far along a dim";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view example = "f32[4,3] {dim=0} : f32[4,3]";
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static constexpr Saves saves = Saves::operands;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_dims;
};

using CumulativeOps = OpList<CumMax, CumMin, LogCumSumExp>;

}  // namespace ops

/// The extreme of x[0] ... x[i] along `dim`, and where it is: of ties the last counts, as in PyTorch. NaN once there is
/// one. Errors: bad_dim, dtype_mismatch for float8.
ValuesAndIndices cummax(Operand input, int64_t dim);
ValuesAndIndices cummin(Operand input, int64_t dim);
/// log(exp(x[0]) + ... + exp(x[i])) along `dim`, without overflow. Errors: bad_dim, dtype_mismatch unless floating.
Tensor logcumsumexp(Operand input, int64_t dim);

}  // namespace retrograd
#pragma GCC visibility pop
