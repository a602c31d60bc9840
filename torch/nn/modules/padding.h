// Padding of 1 to 3 dims.
#pragma once

#include "nn/padding.h"
#include "torch/nn/options/padding.h"
#include "torch/nn/wrapped.h"

#pragma GCC visibility push(default)
namespace torch::nn {

RG_TORCH_LAYERS_123D(ReflectionPad);
RG_TORCH_LAYERS_123D(ReplicationPad);
RG_TORCH_LAYERS_123D(ZeroPad);
RG_TORCH_LAYERS_123D(ConstantPad);

}  // namespace torch::nn
#pragma GCC visibility pop
