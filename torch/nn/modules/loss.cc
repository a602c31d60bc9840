// See torch/nn/modules/loss.h.
#include "torch/nn/modules/loss.h"

namespace torch::nn {

using enumtype::text_of;

L1LossImpl::L1LossImpl(const L1LossOptions& o)
    : Wrapped(o, rn::LossOptions{.reduction = text_of(o.reduction())}) {}
MSELossImpl::MSELossImpl(const MSELossOptions& o)
    : Wrapped(o, rn::LossOptions{.reduction = text_of(o.reduction())}) {}
MultiLabelMarginLossImpl::MultiLabelMarginLossImpl(const MultiLabelMarginLossOptions& o)
    : Wrapped(o, rn::LossOptions{.reduction = text_of(o.reduction())}) {}
SoftMarginLossImpl::SoftMarginLossImpl(const SoftMarginLossOptions& o)
    : Wrapped(o, rn::LossOptions{.reduction = text_of(o.reduction())}) {}
SmoothL1LossImpl::SmoothL1LossImpl(const SmoothL1LossOptions& o)
    : Wrapped(o, rn::SmoothL1LossOptions{.reduction = text_of(o.reduction()), .beta = o.beta().value_or(1)}) {
}
HuberLossImpl::HuberLossImpl(const HuberLossOptions& o)
    : Wrapped(o, rn::HuberLossOptions{.reduction = text_of(o.reduction()), .delta = o.delta()}) {}
KLDivLossImpl::KLDivLossImpl(const KLDivLossOptions& o)
    : Wrapped(o, rn::KLDivLossOptions{.reduction = text_of(o.reduction()), .log_target = o.log_target()}) {}
BCELossImpl::BCELossImpl(const BCELossOptions& o)
    : Wrapped(o, rn::WeightedLossOptions{.weight = o.weight(), .reduction = text_of(o.reduction())}) {}
MultiLabelSoftMarginLossImpl::MultiLabelSoftMarginLossImpl(const MultiLabelSoftMarginLossOptions& o)
    : Wrapped(o, rn::WeightedLossOptions{.weight = o.weight(), .reduction = text_of(o.reduction())}) {}
BCEWithLogitsLossImpl::BCEWithLogitsLossImpl(const BCEWithLogitsLossOptions& o)
    : Wrapped(o,
              rn::BCEWithLogitsLossOptions{
                  .weight = o.weight(), .reduction = text_of(o.reduction()), .pos_weight = o.pos_weight()}) {}
NLLLossImpl::NLLLossImpl(const NLLLossOptions& o)
    : Wrapped(o, rn::NLLLossOptions{.weight = o.weight(),
                                    .ignore_index = o.ignore_index(),
                                    .reduction = text_of(o.reduction())}) {}
CrossEntropyLossImpl::CrossEntropyLossImpl(const CrossEntropyLossOptions& o)
    : Wrapped(o, rn::CrossEntropyLossOptions{.weight = o.weight(),
                                             .ignore_index = o.ignore_index(),
                                             .reduction = text_of(o.reduction()),
                                             .label_smoothing = o.label_smoothing()}) {}
PoissonNLLLossImpl::PoissonNLLLossImpl(const PoissonNLLLossOptions& o)
    : Wrapped(o, rn::PoissonNLLLossOptions{.log_input = o.log_input(),
                                           .full = o.full(),
                                           .eps = o.eps(),
                                           .reduction = text_of(o.reduction())}) {}
CTCLossImpl::CTCLossImpl(const CTCLossOptions& o)
    : Wrapped(o, rn::CTCLossOptions{.blank = o.blank(),
                                    .reduction = text_of(o.reduction()),
                                    .zero_infinity = o.zero_infinity()}) {}
HingeEmbeddingLossImpl::HingeEmbeddingLossImpl(const HingeEmbeddingLossOptions& o)
    : Wrapped(o, rn::HingeEmbeddingLossOptions{.margin = o.margin(), .reduction = text_of(o.reduction())}) {}
CosineEmbeddingLossImpl::CosineEmbeddingLossImpl(const CosineEmbeddingLossOptions& o)
    : Wrapped(o, rn::MarginLossOptions{.margin = o.margin(), .reduction = text_of(o.reduction())}) {}
MarginRankingLossImpl::MarginRankingLossImpl(const MarginRankingLossOptions& o)
    : Wrapped(o, rn::MarginLossOptions{.margin = o.margin(), .reduction = text_of(o.reduction())}) {}
MultiMarginLossImpl::MultiMarginLossImpl(const MultiMarginLossOptions& o)
    : Wrapped(
          o,
          rn::MultiMarginLossOptions{
              .p = o.p(), .margin = o.margin(), .weight = o.weight(), .reduction = text_of(o.reduction())}) {}
TripletMarginLossImpl::TripletMarginLossImpl(const TripletMarginLossOptions& o)
    : Wrapped(o, rn::TripletMarginLossOptions{.margin = o.margin(),
                                              .p = o.p(),
                                              .eps = o.eps(),
                                              .swap = o.swap(),
                                              .reduction = text_of(o.reduction())}) {}
TripletMarginWithDistanceLossImpl::TripletMarginWithDistanceLossImpl(
    const TripletMarginWithDistanceLossOptions& o)
    : Wrapped(o, rn::TripletMarginWithDistanceLossOptions{
                     .distance_function = o.distance_function().value_or(nullptr),
                     .margin = o.margin(),
                     .swap = o.swap(),
                     .reduction = text_of(o.reduction())}) {}

AdaptiveLogSoftmaxWithLossImpl::AdaptiveLogSoftmaxWithLossImpl(const AdaptiveLogSoftmaxWithLossOptions& o)
    : Wrapped(o, o.in_features(), o.n_classes(), o.cutoffs(),
              rn::AdaptiveLogSoftmaxWithLossOptions{.div_value = o.div_value(), .head_bias = o.head_bias()}) {
}

ASMoutput AdaptiveLogSoftmaxWithLossImpl::forward(Operand input, const Tensor& target) const {
  auto [output, loss] = rn::AdaptiveLogSoftmaxWithLoss::forward(input, target);
  return {output, loss.item<double>()};
}

}  // namespace torch::nn
