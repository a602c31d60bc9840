// See nn/margin_losses.h.
#include "nn/margin_losses.h"

#include <fmt/format.h>

namespace retrograd::inline v0::nn {

Tensor HingeEmbeddingLoss::forward(Operand input, const Tensor& target) const {
  return hinge_embedding_loss(input, target, options.margin, options.reduction);
}
std::string HingeEmbeddingLoss::extra_repr() const { return fmt::format("margin={}", options.margin); }

Tensor MarginRankingLoss::forward(Operand input1, const Tensor& input2, const Tensor& target) const {
  return margin_ranking_loss(input1, input2, target, options.margin, options.reduction);
}
std::string MarginRankingLoss::extra_repr() const { return fmt::format("margin={}", options.margin); }

Tensor CosineEmbeddingLoss::forward(Operand input1, const Tensor& input2, const Tensor& target) const {
  return cosine_embedding_loss(input1, input2, target, options.margin, options.reduction);
}
std::string CosineEmbeddingLoss::extra_repr() const { return fmt::format("margin={}", options.margin); }

Tensor TripletMarginLoss::forward(Operand anchor, const Tensor& positive, const Tensor& negative) const {
  return triplet_margin_loss(anchor, positive, negative, options.margin, options.p, options.eps, options.swap,
                             options.reduction);
}
std::string TripletMarginLoss::extra_repr() const {
  return fmt::format("margin={}, p={}, eps={}, swap={}", options.margin, options.p, options.eps,
                     options.swap);
}

Tensor TripletMarginWithDistanceLoss::forward(Operand anchor, const Tensor& positive,
                                              const Tensor& negative) const {
  return triplet_margin_with_distance_loss(anchor, positive, negative, options.distance_function,
                                           options.margin, options.swap, options.reduction);
}
std::string TripletMarginWithDistanceLoss::extra_repr() const {
  return fmt::format("margin={}, swap={}", options.margin, options.swap);
}

Tensor MultiMarginLoss::forward(Operand input, const Tensor& target) const {
  return multi_margin_loss(input, target, options.p, options.margin, weight, options.reduction);
}
std::string MultiMarginLoss::extra_repr() const {
  return fmt::format("p={}, margin={}", options.p, options.margin);
}

Tensor MultiLabelMarginLoss::forward(Operand input, const Tensor& target) const {
  return multilabel_margin_loss(input, target, options.reduction);
}

Tensor SoftMarginLoss::forward(Operand input, const Tensor& target) const {
  return soft_margin_loss(input, target, options.reduction);
}

Tensor MultiLabelSoftMarginLoss::forward(Operand input, const Tensor& target) const {
  return multilabel_soft_margin_loss(input, target, weight, options.reduction);
}

}  // namespace retrograd::nn
