// Pooling of 1 to 3 dims.
#pragma once

#include <tuple>

#include "nn/pooling.h"
#include "torch/nn/names.h"
#include "torch/nn/options/pooling.h"
#include "torch/nn/wrapped.h"

#pragma GCC visibility push(default)
namespace torch::nn {

// Pools that also give the places of the maxima.
#define RG_TORCH_MAX_POOL(NAME)                                                         \
  RG_TORCH_IMPL(NAME, NAME, NAME##Options,                                              \
                std::tuple<Tensor, Tensor> forward_with_indices(Operand input) const;); \
  using NAME = LayerHolder<NAME##Impl>

RG_TORCH_MAX_POOL(MaxPool1d);
RG_TORCH_MAX_POOL(MaxPool2d);
RG_TORCH_MAX_POOL(MaxPool3d);
RG_TORCH_MAX_POOL(AdaptiveMaxPool1d);
RG_TORCH_MAX_POOL(AdaptiveMaxPool2d);
RG_TORCH_MAX_POOL(AdaptiveMaxPool3d);
RG_TORCH_MAX_POOL(FractionalMaxPool2d);
RG_TORCH_MAX_POOL(FractionalMaxPool3d);
#undef RG_TORCH_MAX_POOL

RG_TORCH_LAYERS_123D(AvgPool);
RG_TORCH_LAYERS_123D(AdaptiveAvgPool);
RG_TORCH_LAYERS_123D(LPPool);
RG_TORCH_LAYERS_123D(MaxUnpool);

}  // namespace torch::nn
#pragma GCC visibility pop
