// Dropouts.
#pragma once

#include "nn/dropout.h"
#include "torch/nn/options/dropout.h"
#include "torch/nn/wrapped.h"

#pragma GCC visibility push(default)
namespace torch::nn {

RG_TORCH_LAYER(Dropout);
RG_TORCH_LAYER(Dropout2d);
RG_TORCH_LAYER(Dropout3d);
RG_TORCH_LAYER(AlphaDropout);
RG_TORCH_LAYER(FeatureAlphaDropout);

}  // namespace torch::nn
#pragma GCC visibility pop
