// Connectionist temporal classification: -log of the probability that a sequence of independent steps spells a target,
// summed over all alignments (Graves et al. 2006). Between equal labels, and optionally anywhere else, an alignment has
// blanks, and labels may be repeated.
//
// The op computes the sum by dynamic programming over steps and places of the target, with logarithms in float64. Its
// gradient is that by the logarithms of probabilities as independent numbers, -posterior(step, class); it runs the
// recurrence again, forward and backward, rather than keep (steps x places) per sample. With a direction v the backward
// op gives the product of the Hessian, which is symmetric, with v: the same recurrence on dual numbers. So first and
// second derivatives are exact.
// Limit: third derivatives by log_probs are refused.
#pragma once

#include "ops/loss_options.h"
#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct CtcAttrs {
  int64_t blank = 0;  // the class
  bool zero_infinity = false;
  void visit(AttrVisitor& v) {
    v.field("blank", blank);
    v.field("zero_infinity", zero_infinity);
  }
};

/// (log_probs [steps, batch, classes], targets int64 [batch, labels] or one after the other, input_lengths and
/// target_lengths int64 [batch]) -> [batch].
struct CtcLoss {
  using Attrs = CtcAttrs;
  static constexpr std::string_view name = "ctc_loss", doc = "-log of the probability of all alignments";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view operands = "log_probs, targets, input_lengths, target_lengths";
  static constexpr std::string_view example =
      "f32[5,2,4], i64[2,3], i64[2], i64[2] {blank=0, zero_infinity=false} : f32[2]";
  static constexpr int8_t arity = 4;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static constexpr auto saves = Saves::operands;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

/// (g [batch], the operands of ctc_loss, v like log_probs or none): g times the gradient, or times the Hessian times v.
struct CtcLossBackward {
  using Attrs = CtcAttrs;
  static constexpr std::string_view name = "ctc_loss_backward",
                                    doc = "the gradient of ctc_loss, or its Hessian times v";
  static constexpr std::string_view operands = "g, log_probs, targets, input_lengths, target_lengths, v";
  static constexpr std::string_view example =
      "f32[2], f32[5,2,4], i64[2,3], i64[2], i64[2], f32[5,2,4] {blank=0, zero_infinity=false} : f32[5,2,4]";
  static constexpr int8_t arity = 6;
  static constexpr uint8_t optional = 32;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static constexpr auto saves = Saves::operands;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

using CtcOps = OpList<CtcLoss, CtcLossBackward>;

}  // namespace ops

/// log_probs (T, N, C), logarithms of probabilities; targets (N, S) or of all samples one after the other, of classes
/// other than `blank`; lengths (N); targets and lengths int64 or int32. Or of one sample: log_probs (T, C), targets
/// (S), lengths without dims. reduction "mean" divides each loss by the length of its target, at least 1, before the
/// mean; a target that no alignment spells gives infinity, and a gradient of nan, or with zero_infinity 0 for both.
/// Errors: bad_dim, shape_mismatch, dtype_mismatch, index_out_of_range (a class), bad_argument (blank, a length, no
/// element).
Tensor ctc_loss(Operand log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank = 0, LossReduction reduction = "mean",
                bool zero_infinity = false);

}  // namespace retrograd
#pragma GCC visibility pop
