// Normalisations as functions.
#pragma once

#include "torch/nn/names.h"
#include "torch/nn/options/norms.h"

#pragma GCC visibility push(default)
namespace torch::nn::functional {

Tensor batch_norm(Operand input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& options = {});
Tensor instance_norm(Operand input, const InstanceNormFuncOptions& options = {});
Tensor layer_norm(Operand input, const LayerNormFuncOptions& options);
Tensor group_norm(Operand input, const GroupNormFuncOptions& options);
Tensor local_response_norm(Operand input, const LocalResponseNormFuncOptions& options);
Tensor normalize(Operand input, const NormalizeFuncOptions& options = {});

}  // namespace torch::nn::functional
#pragma GCC visibility pop
