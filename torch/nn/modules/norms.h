// Normalisations.
#pragma once

#include "nn/norms.h"
#include "torch/nn/options/norms.h"
#include "torch/nn/wrapped.h"

#pragma GCC visibility push(default)
namespace torch::nn {

RG_TORCH_LAYERS_123D(BatchNorm);
RG_TORCH_LAYERS_123D(InstanceNorm);
RG_TORCH_LAYER(LayerNorm);
RG_TORCH_LAYER(GroupNorm);
RG_TORCH_LAYER(LocalResponseNorm);
RG_TORCH_LAYER(CrossMapLRN2d);

}  // namespace torch::nn
#pragma GCC visibility pop
