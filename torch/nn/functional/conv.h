// Convolutions as functions.
#pragma once

#include "torch/nn/names.h"
#include "torch/nn/options/conv.h"

#pragma GCC visibility push(default)
namespace torch::nn::functional {

Tensor conv1d(Operand input, const Tensor& weight, const Conv1dFuncOptions& options = {});
Tensor conv2d(Operand input, const Tensor& weight, const Conv2dFuncOptions& options = {});
Tensor conv3d(Operand input, const Tensor& weight, const Conv3dFuncOptions& options = {});
Tensor conv_transpose1d(Operand input, const Tensor& weight, const ConvTranspose1dFuncOptions& options = {});
Tensor conv_transpose2d(Operand input, const Tensor& weight, const ConvTranspose2dFuncOptions& options = {});
Tensor conv_transpose3d(Operand input, const Tensor& weight, const ConvTranspose3dFuncOptions& options = {});

}  // namespace torch::nn::functional
#pragma GCC visibility pop
