// Linear, Bilinear, Identity, and the modules that change shapes.
#pragma once

#include "nn/linear.h"
#include "nn/shape_layers.h"
#include "torch/nn/options/linear.h"
#include "torch/nn/wrapped.h"

#pragma GCC visibility push(default)
namespace torch::nn {

RG_TORCH_LAYER(Linear);
RG_TORCH_LAYER(Bilinear);
RG_TORCH_LAYER(Flatten);
RG_TORCH_LAYER(Unflatten);
RG_TORCH_PLAIN_LAYER(Identity);

}  // namespace torch::nn
#pragma GCC visibility pop
