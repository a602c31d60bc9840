// Folds, pixel shuffles and resampling.
#pragma once

#include "nn/patches.h"
#include "nn/pooling.h"
#include "torch/nn/options/vision.h"
#include "torch/nn/wrapped.h"

#pragma GCC visibility push(default)
namespace torch::nn {

RG_TORCH_LAYER(Fold);
RG_TORCH_LAYER(Unfold);
RG_TORCH_LAYER(PixelShuffle);
RG_TORCH_LAYER(PixelUnshuffle);
RG_TORCH_LAYER(Upsample);

}  // namespace torch::nn
#pragma GCC visibility pop
