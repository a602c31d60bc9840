// See torch/nn/functional/conv.h.
#include "torch/nn/functional/conv.h"

#include "ops/convolution.h"
#include "torch/nn/convert.h"

namespace torch::nn::functional {

Tensor conv1d(Operand input, const Tensor& weight, const Conv1dFuncOptions& options) {
  return retrograd::conv1d(input, weight, options.bias(), options.stride(), conv_padding(options.padding()),
                           options.dilation(), options.groups());
}
Tensor conv2d(Operand input, const Tensor& weight, const Conv2dFuncOptions& options) {
  return retrograd::conv2d(input, weight, options.bias(), options.stride(), conv_padding(options.padding()),
                           options.dilation(), options.groups());
}
Tensor conv3d(Operand input, const Tensor& weight, const Conv3dFuncOptions& options) {
  return retrograd::conv3d(input, weight, options.bias(), options.stride(), conv_padding(options.padding()),
                           options.dilation(), options.groups());
}
Tensor conv_transpose1d(Operand input, const Tensor& weight, const ConvTranspose1dFuncOptions& options) {
  return retrograd::conv_transpose1d(input, weight, options.bias(), options.stride(), options.padding(),
                                     options.output_padding(), options.groups(), options.dilation());
}
Tensor conv_transpose2d(Operand input, const Tensor& weight, const ConvTranspose2dFuncOptions& options) {
  return retrograd::conv_transpose2d(input, weight, options.bias(), options.stride(), options.padding(),
                                     options.output_padding(), options.groups(), options.dilation());
}
Tensor conv_transpose3d(Operand input, const Tensor& weight, const ConvTranspose3dFuncOptions& options) {
  return retrograd::conv_transpose3d(input, weight, options.bias(), options.stride(), options.padding(),
                                     options.output_padding(), options.groups(), options.dilation());
}

}  // namespace torch::nn::functional
