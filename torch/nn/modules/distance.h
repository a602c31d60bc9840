// Distances of vectors.
#pragma once

#include "nn/distances.h"
#include "torch/nn/options/distance.h"
#include "torch/nn/wrapped.h"

#pragma GCC visibility push(default)
namespace torch::nn {

RG_TORCH_LAYER(CosineSimilarity);
RG_TORCH_LAYER(PairwiseDistance);

}  // namespace torch::nn
#pragma GCC visibility pop
