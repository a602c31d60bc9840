// Dropouts as functions. Beside their options only `training` says whether they do anything.
#pragma once

#include "torch/nn/names.h"
#include "torch/nn/options/dropout.h"

#pragma GCC visibility push(default)
namespace torch::nn::functional {

Tensor dropout(Operand input, const DropoutFuncOptions& options = {});
Tensor dropout2d(Operand input, const Dropout2dFuncOptions& options = {});
Tensor dropout3d(Operand input, const Dropout3dFuncOptions& options = {});
Tensor alpha_dropout(Operand input, const AlphaDropoutFuncOptions& options = {});
Tensor feature_alpha_dropout(Operand input, const FeatureAlphaDropoutFuncOptions& options = {});

}  // namespace torch::nn::functional
#pragma GCC visibility pop
