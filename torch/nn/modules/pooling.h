// Pooling of 1 to 3 dims.
#pragma once

#include "nn/pooling.h"
#include "torch/nn/options/pooling.h"
#include "torch/nn/wrapped.h"

#pragma GCC visibility push(default)
namespace torch::nn {

RG_TORCH_LAYERS_123D(AvgPool);
RG_TORCH_LAYERS_123D(MaxPool);
RG_TORCH_LAYERS_123D(AdaptiveAvgPool);
RG_TORCH_LAYERS_123D(AdaptiveMaxPool);
RG_TORCH_LAYERS_123D(LPPool);
RG_TORCH_LAYERS_123D(MaxUnpool);
RG_TORCH_LAYER(FractionalMaxPool2d);
RG_TORCH_LAYER(FractionalMaxPool3d);

}  // namespace torch::nn
#pragma GCC visibility pop
