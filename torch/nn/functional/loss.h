// Losses as functions.
#pragma once

#include "torch/nn/names.h"
#include "torch/nn/options/loss.h"

#pragma GCC visibility push(default)
namespace torch::nn::functional {

Tensor l1_loss(Operand input, const Tensor& target, const L1LossFuncOptions& options = {});
Tensor mse_loss(Operand input, const Tensor& target, const MSELossFuncOptions& options = {});
Tensor smooth_l1_loss(Operand input, const Tensor& target, const SmoothL1LossFuncOptions& options = {});
/// The same, beta beside the options: Error(bad_argument) if they have one, too.
Tensor smooth_l1_loss(Operand input, const Tensor& target, const SmoothL1LossFuncOptions& options,
                      double beta);
Tensor huber_loss(Operand input, const Tensor& target, const HuberLossFuncOptions& options = {});
Tensor kl_div(Operand input, const Tensor& target, const KLDivFuncOptions& options = {});
Tensor binary_cross_entropy(Operand input, const Tensor& target,
                            const BinaryCrossEntropyFuncOptions& options = {});
Tensor binary_cross_entropy_with_logits(Operand input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& options = {});
Tensor nll_loss(Operand input, const Tensor& target, const NLLLossFuncOptions& options = {});
Tensor cross_entropy(Operand input, const Tensor& target, const CrossEntropyFuncOptions& options = {});
Tensor poisson_nll_loss(Operand input, const Tensor& target, const PoissonNLLLossFuncOptions& options = {});
Tensor hinge_embedding_loss(Operand input, const Tensor& target,
                            const HingeEmbeddingLossFuncOptions& options = {});
Tensor multi_margin_loss(Operand input, const Tensor& target, const MultiMarginLossFuncOptions& options = {});
Tensor multilabel_margin_loss(Operand input, const Tensor& target,
                              const MultilabelMarginLossFuncOptions& options = {});
Tensor soft_margin_loss(Operand input, const Tensor& target, const SoftMarginLossFuncOptions& options = {});
Tensor multilabel_soft_margin_loss(Operand input, const Tensor& target,
                                   const MultilabelSoftMarginLossFuncOptions& options = {});
Tensor cosine_embedding_loss(Operand input1, const Tensor& input2, const Tensor& target,
                             const CosineEmbeddingLossFuncOptions& options = {});
Tensor margin_ranking_loss(Operand input1, const Tensor& input2, const Tensor& target,
                           const MarginRankingLossFuncOptions& options = {});
Tensor triplet_margin_loss(Operand anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossFuncOptions& options = {});
Tensor triplet_margin_with_distance_loss(Operand anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossFuncOptions& options = {});
Tensor ctc_loss(Operand log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossFuncOptions& options = {});

}  // namespace torch::nn::functional
#pragma GCC visibility pop
