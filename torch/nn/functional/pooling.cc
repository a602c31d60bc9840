// See torch/nn/functional/pooling.h.
#include "torch/nn/functional/pooling.h"

#include "ops/patches.h"
#include "ops/pooling.h"
#include "torch/nn/convert.h"

namespace torch::nn::functional {

Tensor avg_pool1d(Operand input, const AvgPool1dFuncOptions& options) {
  return retrograd::avg_pool1d(input, options.kernel_size(), options.stride(), options.padding(),
                               options.ceil_mode(), options.count_include_pad());
}
Tensor avg_pool2d(Operand input, const AvgPool2dFuncOptions& options) {
  return retrograd::avg_pool2d(input, options.kernel_size(), options.stride(), options.padding(),
                               options.ceil_mode(), options.count_include_pad(), options.divisor_override());
}
Tensor avg_pool3d(Operand input, const AvgPool3dFuncOptions& options) {
  return retrograd::avg_pool3d(input, options.kernel_size(), options.stride(), options.padding(),
                               options.ceil_mode(), options.count_include_pad(), options.divisor_override());
}
Tensor max_pool1d(Operand input, const MaxPool1dFuncOptions& options) {
  return retrograd::max_pool1d(input, options.kernel_size(), options.stride(), options.padding(),
                               options.dilation(), options.ceil_mode());
}
Tensor max_pool2d(Operand input, const MaxPool2dFuncOptions& options) {
  return retrograd::max_pool2d(input, options.kernel_size(), options.stride(), options.padding(),
                               options.dilation(), options.ceil_mode());
}
Tensor max_pool3d(Operand input, const MaxPool3dFuncOptions& options) {
  return retrograd::max_pool3d(input, options.kernel_size(), options.stride(), options.padding(),
                               options.dilation(), options.ceil_mode());
}
Tensor lp_pool1d(Operand input, const LPPool1dFuncOptions& options) {
  return retrograd::lp_pool1d(input, options.norm_type(), options.kernel_size(), options.stride(),
                              options.ceil_mode());
}
Tensor lp_pool2d(Operand input, const LPPool2dFuncOptions& options) {
  return retrograd::lp_pool2d(input, options.norm_type(), options.kernel_size(), options.stride(),
                              options.ceil_mode());
}
Tensor lp_pool3d(Operand input, const LPPool3dFuncOptions& options) {
  return retrograd::lp_pool3d(input, options.norm_type(), options.kernel_size(), options.stride(),
                              options.ceil_mode());
}
Tensor adaptive_avg_pool1d(Operand input, const AdaptiveAvgPool1dFuncOptions& options) {
  return retrograd::adaptive_avg_pool1d(input, adaptive_size(options.output_size()));
}
Tensor adaptive_avg_pool2d(Operand input, const AdaptiveAvgPool2dFuncOptions& options) {
  return retrograd::adaptive_avg_pool2d(input, adaptive_size(options.output_size()));
}
Tensor adaptive_avg_pool3d(Operand input, const AdaptiveAvgPool3dFuncOptions& options) {
  return retrograd::adaptive_avg_pool3d(input, adaptive_size(options.output_size()));
}
Tensor adaptive_max_pool1d(Operand input, const AdaptiveMaxPool1dFuncOptions& options) {
  return retrograd::adaptive_max_pool1d(input, adaptive_size(options.output_size()));
}
Tensor adaptive_max_pool2d(Operand input, const AdaptiveMaxPool2dFuncOptions& options) {
  return retrograd::adaptive_max_pool2d(input, adaptive_size(options.output_size()));
}
Tensor adaptive_max_pool3d(Operand input, const AdaptiveMaxPool3dFuncOptions& options) {
  return retrograd::adaptive_max_pool3d(input, adaptive_size(options.output_size()));
}

namespace {

std::tuple<Tensor, Tensor> as_tuple(retrograd::MaxPoolResult result) {
  return {std::move(result.values), std::move(result.indices)};
}

}  // namespace

std::tuple<Tensor, Tensor> max_pool1d_with_indices(Operand input, const MaxPool1dFuncOptions& options) {
  return as_tuple(retrograd::max_pool1d_with_indices(input, options.kernel_size(), options.stride(),
                                                     options.padding(), options.dilation(),
                                                     options.ceil_mode()));
}
std::tuple<Tensor, Tensor> max_pool2d_with_indices(Operand input, const MaxPool2dFuncOptions& options) {
  return as_tuple(retrograd::max_pool2d_with_indices(input, options.kernel_size(), options.stride(),
                                                     options.padding(), options.dilation(),
                                                     options.ceil_mode()));
}
std::tuple<Tensor, Tensor> max_pool3d_with_indices(Operand input, const MaxPool3dFuncOptions& options) {
  return as_tuple(retrograd::max_pool3d_with_indices(input, options.kernel_size(), options.stride(),
                                                     options.padding(), options.dilation(),
                                                     options.ceil_mode()));
}
std::tuple<Tensor, Tensor> adaptive_max_pool1d_with_indices(Operand input,
                                                            const AdaptiveMaxPool1dFuncOptions& options) {
  return as_tuple(retrograd::adaptive_max_pool1d_with_indices(input, adaptive_size(options.output_size())));
}
std::tuple<Tensor, Tensor> adaptive_max_pool2d_with_indices(Operand input,
                                                            const AdaptiveMaxPool2dFuncOptions& options) {
  return as_tuple(retrograd::adaptive_max_pool2d_with_indices(input, adaptive_size(options.output_size())));
}
std::tuple<Tensor, Tensor> adaptive_max_pool3d_with_indices(Operand input,
                                                            const AdaptiveMaxPool3dFuncOptions& options) {
  return as_tuple(retrograd::adaptive_max_pool3d_with_indices(input, adaptive_size(options.output_size())));
}

}  // namespace torch::nn::functional
