// Names of the library that torch::nn uses.
#pragma once

#include "engine/tensor.h"
#include "nn/ordered_dict.h"

namespace torch {

using retrograd::Operand;
using retrograd::OrderedDict;
using retrograd::Tensor;

}  // namespace torch
