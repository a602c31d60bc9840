// See torch/nn/functional/norms.h.
#include "torch/nn/functional/norms.h"

#include "ops/channels.h"
#include "ops/composed.h"
#include "ops/norms.h"

namespace torch::nn::functional {

Tensor batch_norm(Operand input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& options) {
  return retrograd::batch_norm(input, options.weight(), options.bias(), running_mean, running_var,
                               options.training(), options.momentum(), options.eps());
}
Tensor instance_norm(Operand input, const InstanceNormFuncOptions& options) {
  return retrograd::instance_norm(input, options.weight(), options.bias(), options.running_mean(),
                                  options.running_var(), options.use_input_stats(), options.momentum(),
                                  options.eps());
}
Tensor layer_norm(Operand input, const LayerNormFuncOptions& options) {
  return retrograd::layer_norm(input, retrograd::Shape(options.normalized_shape()), options.weight(),
                               options.bias(), options.eps());
}
Tensor group_norm(Operand input, const GroupNormFuncOptions& options) {
  return retrograd::group_norm(input, options.num_groups(), options.weight(), options.bias(), options.eps());
}
Tensor local_response_norm(Operand input, const LocalResponseNormFuncOptions& options) {
  return retrograd::local_response_norm(input, options.size(), options.alpha(), options.beta(), options.k());
}
Tensor normalize(Operand input, const NormalizeFuncOptions& options) {
  return retrograd::normalize(input, options.p(), options.dim(), options.eps());
}

}  // namespace torch::nn::functional
