// Negative log likelihoods of distributions: poisson_nll_loss, gaussian_nll_loss; and check_range, the op that refuses
// values outside of the domain of a loss.
//
// The losses are made of other ops, computed in float32 for 16 bits and rounded once, after the reduction.
#pragma once

#include "ops/loss_options.h"
#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// Fails with bad_argument if an element is below `low` or above `high`; the result, bool without dims, is true. A nan
/// is refused with `refuses_nan`. It runs even where nothing uses the result (Trait::checks).
struct CheckRange {
  struct Attrs {
    Scalar low = 0.0, high = 1.0;
    bool refuses_nan = true;
    void visit(AttrVisitor& v) {
      v.field("low", low);
      v.field("high", high);
      v.field("refuses_nan", refuses_nan);
    }
  };
  static constexpr std::string_view name = "check_range", doc = "fails if an element is out of a range",
                                    no_derivative = "it only checks";
  static constexpr std::string_view example = "f32[2,3] {low=0, high=1, refuses_nan=true} : bool[]";
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void batch(BatchContext& c);
};

using RangeOps = OpList<CheckRange>;

/// Emits check_range.
void check_range(Operand x, const CheckRange::Attrs& range);

}  // namespace ops

// `reduction` is "none", "sum" or "mean": Error(bad_argument) otherwise. Shapes broadcast, dtypes promote.

/// For the logarithm of a rate: e^input - target input; without log_input for the rate: input - target log(input +
/// eps). `full` adds Stirling's approximation of log(target!), target log(target) - target + log(2 pi target) / 2,
/// where target > 1.
Tensor poisson_nll_loss(Operand input, const Tensor& target, bool log_input = true, bool full = false,
                        Scalar eps = 1e-8, LossReduction reduction = "mean");
/// (log(v) + (input - target)^2 / v) / 2 for v = max(var, eps), through which the gradient passes to var unchanged;
/// `full` adds log(2 pi) / 2. var has the input's shape, or this without its last dim, or with one size replaced by 1:
/// Error(bad_argument) for others and for negative entries.
Tensor gaussian_nll_loss(Operand input, const Tensor& target, const Tensor& var, bool full = false,
                         Scalar eps = 1e-6, LossReduction reduction = "mean");

}  // namespace retrograd
#pragma GCC visibility pop
