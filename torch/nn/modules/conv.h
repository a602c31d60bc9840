// Convolutions, and transposed ones, of 1 to 3 dims.
#pragma once

#include "nn/convolution.h"
#include "torch/nn/options/conv.h"
#include "torch/nn/wrapped.h"

#pragma GCC visibility push(default)
namespace torch::nn {

RG_TORCH_LAYERS_123D(Conv);
RG_TORCH_LAYERS_123D(ConvTranspose);

}  // namespace torch::nn
#pragma GCC visibility pop
