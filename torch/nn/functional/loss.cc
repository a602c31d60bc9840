// See torch/nn/functional/loss.h.
#include "torch/nn/functional/loss.h"

#include "ops/ctc_loss.h"
#include "ops/likelihood_losses.h"
#include "ops/losses.h"
#include "ops/margin_losses.h"

namespace torch::nn::functional {

using enumtype::text_of;

Tensor l1_loss(Operand input, const Tensor& target, const L1LossFuncOptions& options) {
  return retrograd::l1_loss(input, target, text_of(options.reduction()));
}
Tensor mse_loss(Operand input, const Tensor& target, const MSELossFuncOptions& options) {
  return retrograd::mse_loss(input, target, text_of(options.reduction()));
}
Tensor smooth_l1_loss(Operand input, const Tensor& target, const SmoothL1LossFuncOptions& options) {
  return retrograd::smooth_l1_loss(input, target, text_of(options.reduction()), options.beta().value_or(1));
}
Tensor smooth_l1_loss(Operand input, const Tensor& target, const SmoothL1LossFuncOptions& options,
                      double beta) {
  if (options.beta())
    retrograd::fail(retrograd::Category::bad_argument, "smooth_l1_loss", "beta is given twice",
                    input.where());
  return retrograd::smooth_l1_loss(input, target, text_of(options.reduction()), beta);
}
Tensor huber_loss(Operand input, const Tensor& target, const HuberLossFuncOptions& options) {
  return retrograd::huber_loss(input, target, text_of(options.reduction()), options.delta());
}
Tensor kl_div(Operand input, const Tensor& target, const KLDivFuncOptions& options) {
  return retrograd::kl_div(input, target, text_of(options.reduction()), options.log_target());
}
Tensor binary_cross_entropy(Operand input, const Tensor& target,
                            const BinaryCrossEntropyFuncOptions& options) {
  return retrograd::binary_cross_entropy(input, target, options.weight(), text_of(options.reduction()));
}
Tensor binary_cross_entropy_with_logits(Operand input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& options) {
  return retrograd::binary_cross_entropy_with_logits(input, target, options.weight(), options.pos_weight(),
                                                     text_of(options.reduction()));
}
Tensor nll_loss(Operand input, const Tensor& target, const NLLLossFuncOptions& options) {
  return retrograd::nll_loss(input, target, options.weight(), text_of(options.reduction()),
                             options.ignore_index());
}
Tensor cross_entropy(Operand input, const Tensor& target, const CrossEntropyFuncOptions& options) {
  return retrograd::cross_entropy(input, target, options.weight(), text_of(options.reduction()),
                                  options.ignore_index(), options.label_smoothing());
}
Tensor poisson_nll_loss(Operand input, const Tensor& target, const PoissonNLLLossFuncOptions& options) {
  return retrograd::poisson_nll_loss(input, target, options.log_input(), options.full(), options.eps(),
                                     text_of(options.reduction()));
}
Tensor hinge_embedding_loss(Operand input, const Tensor& target,
                            const HingeEmbeddingLossFuncOptions& options) {
  return retrograd::hinge_embedding_loss(input, target, options.margin(), text_of(options.reduction()));
}
Tensor multi_margin_loss(Operand input, const Tensor& target, const MultiMarginLossFuncOptions& options) {
  return retrograd::multi_margin_loss(input, target, options.p(), options.margin(), options.weight(),
                                      text_of(options.reduction()));
}
Tensor multilabel_margin_loss(Operand input, const Tensor& target,
                              const MultilabelMarginLossFuncOptions& options) {
  return retrograd::multilabel_margin_loss(input, target, text_of(options.reduction()));
}
Tensor soft_margin_loss(Operand input, const Tensor& target, const SoftMarginLossFuncOptions& options) {
  return retrograd::soft_margin_loss(input, target, text_of(options.reduction()));
}
Tensor multilabel_soft_margin_loss(Operand input, const Tensor& target,
                                   const MultilabelSoftMarginLossFuncOptions& options) {
  return retrograd::multilabel_soft_margin_loss(input, target, options.weight(),
                                                text_of(options.reduction()));
}
Tensor cosine_embedding_loss(Operand input1, const Tensor& input2, const Tensor& target,
                             const CosineEmbeddingLossFuncOptions& options) {
  return retrograd::cosine_embedding_loss(input1, input2, target, options.margin(),
                                          text_of(options.reduction()));
}
Tensor margin_ranking_loss(Operand input1, const Tensor& input2, const Tensor& target,
                           const MarginRankingLossFuncOptions& options) {
  return retrograd::margin_ranking_loss(input1, input2, target, options.margin(),
                                        text_of(options.reduction()));
}
Tensor triplet_margin_loss(Operand anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossFuncOptions& options) {
  return retrograd::triplet_margin_loss(anchor, positive, negative, options.margin(), options.p(),
                                        options.eps(), options.swap(), text_of(options.reduction()));
}
Tensor triplet_margin_with_distance_loss(Operand anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossFuncOptions& options) {
  return retrograd::triplet_margin_with_distance_loss(
      anchor, positive, negative, options.distance_function().value_or(nullptr), options.margin(),
      options.swap(), text_of(options.reduction()));
}
Tensor ctc_loss(Operand log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossFuncOptions& options) {
  return retrograd::ctc_loss(log_probs, targets, input_lengths, target_lengths, options.blank(),
                             text_of(options.reduction()), options.zero_infinity());
}

}  // namespace torch::nn::functional
