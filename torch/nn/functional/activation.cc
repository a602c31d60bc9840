// See torch/nn/functional/activation.h.
#include "torch/nn/functional/activation.h"

#include "ops/activations.h"
#include "ops/composed.h"
#include "ops/random_activations.h"
#include "ops/shrinkage.h"
#include "ops/softmax.h"
#include "torch/nn/functional/in_place.h"

namespace torch::nn::functional {

Tensor elu(Operand input, const ELUFuncOptions& options) {
  return maybe_in_place(input, options.inplace(), "elu_",
                        [&](const Operand& x) { return retrograd::elu(x, options.alpha()); });
}
Tensor selu(Operand input, const SELUFuncOptions& options) {
  return maybe_in_place(input, options.inplace(), "selu_",
                        [&](const Operand& x) { return retrograd::selu(x); });
}
Tensor celu(Operand input, const CELUFuncOptions& options) {
  return maybe_in_place(input, options.inplace(), "celu_",
                        [&](const Operand& x) { return retrograd::celu(x, options.alpha()); });
}
Tensor relu(Operand input, const ReLUFuncOptions& options) {
  return maybe_in_place(input, options.inplace(), "relu_",
                        [&](const Operand& x) { return retrograd::relu(x); });
}
Tensor relu6(Operand input, const ReLU6FuncOptions& options) {
  return maybe_in_place(input, options.inplace(), "relu6_",
                        [&](const Operand& x) { return retrograd::relu6(x); });
}
Tensor leaky_relu(Operand input, const LeakyReLUFuncOptions& options) {
  return maybe_in_place(input, options.inplace(), "leaky_relu_",
                        [&](const Operand& x) { return retrograd::leaky_relu(x, options.negative_slope()); });
}
Tensor hardtanh(Operand input, const HardtanhFuncOptions& options) {
  return maybe_in_place(input, options.inplace(), "hardtanh_", [&](const Operand& x) {
    return retrograd::hardtanh(x, options.min_val(), options.max_val());
  });
}
Tensor threshold(Operand input, const ThresholdFuncOptions& options) {
  return maybe_in_place(input, options.inplace(), "threshold_", [&](const Operand& x) {
    return retrograd::threshold(x, options.threshold(), options.value());
  });
}

Tensor rrelu(Operand input, const RReLUFuncOptions& options) {
  return maybe_in_place(input, options.inplace(), "rrelu_", [&](const Operand& x) {
    return retrograd::rrelu(x, options.lower(), options.upper(), options.training());
  });
}
Tensor gumbel_softmax(Operand logits, const GumbelSoftmaxFuncOptions& options) {
  return retrograd::gumbel_softmax(logits, options.tau(), options.hard(), options.dim());
}
Tensor hardshrink(Operand input, const HardshrinkFuncOptions& options) {
  return retrograd::hardshrink(input, options.lambda());
}
Tensor softshrink(Operand input, const SoftshrinkFuncOptions& options) {
  return retrograd::softshrink(input, options.lambda());
}
Tensor gelu(Operand input, const GELUFuncOptions& options) {
  return retrograd::gelu(input, options.approximate());
}
Tensor glu(Operand input, const GLUFuncOptions& options) { return retrograd::glu(input, options.dim()); }
Tensor softplus(Operand input, const SoftplusFuncOptions& options) {
  return retrograd::softplus(input, options.beta(), options.threshold());
}
Tensor softmax(Operand input, const SoftmaxFuncOptions& options) {
  return retrograd::softmax(input, options.dim(), options.dtype());
}
Tensor softmin(Operand input, const SoftminFuncOptions& options) {
  return retrograd::softmin(input, options.dim(), options.dtype());
}
Tensor log_softmax(Operand input, const LogSoftmaxFuncOptions& options) {
  return retrograd::log_softmax(input, options.dim(), options.dtype());
}
Tensor logsigmoid(Operand input) { return retrograd::logsigmoid(input); }
Tensor silu(Operand input) { return retrograd::silu(input); }
Tensor mish(Operand input) { return retrograd::mish(input); }
Tensor softsign(Operand input) { return retrograd::softsign(input); }
Tensor tanhshrink(Operand input) { return retrograd::tanhshrink(input); }
Tensor prelu(Operand input, const Tensor& weight) { return retrograd::prelu(input, weight); }

}  // namespace torch::nn::functional
