// Names of the library that torch::nn uses.
#pragma once

#include "engine/tensor.h"

namespace torch {

using retrograd::Operand;
using retrograd::Tensor;

}  // namespace torch
