// Losses.
#pragma once

#include "nn/adaptive_softmax.h"
#include "nn/losses.h"
#include "nn/margin_losses.h"
#include "torch/nn/names.h"
#include "torch/nn/options/loss.h"
#include "torch/nn/wrapped.h"

#pragma GCC visibility push(default)
namespace torch::nn {

RG_TORCH_LAYER(L1Loss);
RG_TORCH_LAYER(MSELoss);
RG_TORCH_LAYER(SmoothL1Loss);
RG_TORCH_LAYER(HuberLoss);
RG_TORCH_LAYER(KLDivLoss);
RG_TORCH_LAYER(BCELoss);
RG_TORCH_LAYER(BCEWithLogitsLoss);
RG_TORCH_LAYER(NLLLoss);
RG_TORCH_LAYER(CrossEntropyLoss);
RG_TORCH_LAYER(PoissonNLLLoss);
RG_TORCH_LAYER(CTCLoss);
RG_TORCH_LAYER(HingeEmbeddingLoss);
RG_TORCH_LAYER(CosineEmbeddingLoss);
RG_TORCH_LAYER(MarginRankingLoss);
RG_TORCH_LAYER(MultiMarginLoss);
RG_TORCH_LAYER(MultiLabelMarginLoss);
RG_TORCH_LAYER(MultiLabelSoftMarginLoss);
RG_TORCH_LAYER(SoftMarginLoss);
RG_TORCH_LAYER(TripletMarginLoss);
RG_TORCH_LAYER(TripletMarginWithDistanceLoss);

/// The logarithms of the targets' probabilities, and minus their mean as a number.
struct ASMoutput {
  Tensor output;
  double loss;
};
RG_TORCH_IMPL(AdaptiveLogSoftmaxWithLoss, AdaptiveLogSoftmaxWithLoss, AdaptiveLogSoftmaxWithLossOptions,
              ASMoutput forward(Operand input, const Tensor& target) const;);
TORCH_MODULE(AdaptiveLogSoftmaxWithLoss);

}  // namespace torch::nn
#pragma GCC visibility pop
