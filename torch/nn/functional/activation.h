// Activations of torch::nn::functional. Like all functions of this folder they are retrograd's, and take arguments as
// libtorch's do: an options class, or none. What they compute, and errors, are documented where retrograd has them.
#pragma once

#include <tuple>

#include "torch/nn/names.h"
#include "torch/nn/options/activation.h"

#pragma GCC visibility push(default)
namespace torch::nn::functional {

Tensor elu(Operand input, const ELUFuncOptions& options = {});
Tensor selu(Operand input, const SELUFuncOptions& options = {});
Tensor celu(Operand input, const CELUFuncOptions& options = {});
Tensor relu(Operand input, const ReLUFuncOptions& options = {});
Tensor relu6(Operand input, const ReLU6FuncOptions& options = {});
Tensor leaky_relu(Operand input, const LeakyReLUFuncOptions& options = {});
Tensor hardtanh(Operand input, const HardtanhFuncOptions& options = {});
Tensor threshold(Operand input, const ThresholdFuncOptions& options);
Tensor rrelu(Operand input, const RReLUFuncOptions& options = {});
Tensor gumbel_softmax(Operand logits, const GumbelSoftmaxFuncOptions& options = {});
Tensor hardshrink(Operand input, const HardshrinkFuncOptions& options = {});
Tensor softshrink(Operand input, const SoftshrinkFuncOptions& options = {});
Tensor gelu(Operand input, const GELUFuncOptions& options = {});
Tensor glu(Operand input, const GLUFuncOptions& options = {});
Tensor softplus(Operand input, const SoftplusFuncOptions& options = {});
Tensor softmax(Operand input, const SoftmaxFuncOptions& options);
Tensor softmin(Operand input, const SoftminFuncOptions& options);
Tensor log_softmax(Operand input, const LogSoftmaxFuncOptions& options);
Tensor logsigmoid(Operand input);
Tensor silu(Operand input);
Tensor mish(Operand input);
Tensor softsign(Operand input);
Tensor tanhshrink(Operand input);
Tensor prelu(Operand input, const Tensor& weight);

}  // namespace torch::nn::functional
#pragma GCC visibility pop
