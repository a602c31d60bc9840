// torch::nn: modules, functions, initial values and utilities under the names of libtorch's torch/nn.h.
#pragma once

#include "torch/nn/cloneable.h"
#include "torch/nn/functional.h"
#include "torch/nn/init.h"
#include "torch/nn/modules.h"
#include "torch/nn/utils.h"
