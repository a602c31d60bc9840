// Losses of margins: zero as soon as a score is on the right side of a boundary by a margin, linear (or quadratic)
// before; and their smooth relatives.
//
// All but one are made of other ops, computed in float32 for 16 bits and rounded once, after the reduction. Their
// derivative at the hinge is 0. multilabel_margin_loss is an op of its own, since each sample compares all its targets
// with all its other classes: that table of classes x classes is never stored. The op is piecewise linear, so that its
// gradient is linear in g and its second derivative by x is 0.
#pragma once

#include "ops/loss_options.h"
#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// (x [samples, classes], target int64 of the same shape): sums of max(0, 1 - x[j] + x[i]) over targets j and other
/// classes i, divided by the number of classes. A sample's targets end at its first -1.
struct MultilabelMargin {
  using Attrs = NoAttrs;
  static constexpr std::string_view name = "multilabel_margin",
                                    doc = "mean hinges between a sample's targets and its other classes";
  static constexpr std::string_view operands = "x, target";
  static constexpr std::string_view example = "f32[2,3], i64[2,3] : f32[2]";
  static constexpr int8_t arity = 2;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static constexpr auto saves = Saves::operands;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_folded;
};

/// (g [samples], x, target): g times the derivative of multilabel_margin by x.
struct MultilabelMarginBackward {
  using Attrs = NoAttrs;
  static constexpr std::string_view name = "multilabel_margin_backward",
                                    doc = "the gradient of multilabel_margin by x";
  static constexpr std::string_view operands = "g, x, target";
  static constexpr std::string_view example = "f32[2], f32[2,3], i64[2,3] : f32[2,3]";
  static constexpr int8_t arity = 3;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static SaveSet saves_for(const Call&, uint64_t) { return {6, 0}; }  // x, target
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_folded;
};

using MarginLossOps = OpList<MultilabelMargin, MultilabelMarginBackward>;

}  // namespace ops

// `reduction` is "none", "sum" or "mean": Error(bad_argument) otherwise. Dtypes promote.

/// max(0, margin - target (input1 - input2)), target 1 or -1. Shapes broadcast but have one number of dims:
/// Error(shape_mismatch).
Tensor margin_ranking_loss(Operand input1, const Tensor& input2, const Tensor& target, Scalar margin = 0.0,
                           LossReduction reduction = "mean");
/// input where target is 1, max(0, margin - input) where it is -1. Shapes broadcast.
Tensor hinge_embedding_loss(Operand input, const Tensor& target, Scalar margin = 1.0,
                            LossReduction reduction = "mean");
/// 1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1. Inputs (N, D) with a target (N), or
/// (D) with one of no dims: Error(bad_dim) otherwise.
Tensor cosine_embedding_loss(Operand input1, const Tensor& input2, const Tensor& target, Scalar margin = 0.0,
                             LossReduction reduction = "mean");
/// max(0, margin + d(anchor, positive) - d(anchor, negative)) for d = pairwise_distance; with `swap` the smaller of
/// d(anchor, negative) and d(positive, negative). Errors: bad_argument unless margin > 0, shape_mismatch.
Tensor triplet_margin_loss(Operand anchor, const Tensor& positive, const Tensor& negative,
                           Scalar margin = 1.0, Scalar p = 2.0, Scalar eps = 1e-6, bool swap = false,
                           LossReduction reduction = "mean");
using DistanceFunction = std::function<Tensor(const Tensor&, const Tensor&)>;
/// The same with any distance of two rows, (N, D) and (N, D) -> (N); pairwise_distance if none is given.
Tensor triplet_margin_with_distance_loss(Operand anchor, const Tensor& positive, const Tensor& negative,
                                         const DistanceFunction& distance_function = {}, Scalar margin = 1.0,
                                         bool swap = false, LossReduction reduction = "mean");
/// Mean over the classes of weight[target] max(0, margin - input[target] + input[i])^p for i other than the target;
/// p is 1 or 2. Input (N, C) with target (N) int64, or (C) with a target of one element. Errors: bad_dim,
/// shape_mismatch, dtype_mismatch, index_out_of_range, bad_argument (p).
Tensor multi_margin_loss(Operand input, const Tensor& target, Scalar p = 1, Scalar margin = 1.0,
                         const Tensor& weight = {}, LossReduction reduction = "mean");
/// Mean over the classes of sums of max(0, 1 - input[j] + input[i]) over targets j and other classes i. Input (N, C) or
/// (C), target int64 of that shape, in which a sample's targets end at the first -1. Errors as above.
Tensor multilabel_margin_loss(Operand input, const Tensor& target, LossReduction reduction = "mean");
/// log(1 + e^(-target input)). The target broadcasts to the input: Error(shape_mismatch).
Tensor soft_margin_loss(Operand input, const Tensor& target, LossReduction reduction = "mean");
/// Mean over the last dim of weight times the binary cross entropy with logits. Error(bad_dim) without a dim.
Tensor multilabel_soft_margin_loss(Operand input, const Tensor& target, const Tensor& weight = {},
                                   LossReduction reduction = "mean");

}  // namespace retrograd
#pragma GCC visibility pop
