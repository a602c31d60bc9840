// See torch/nn/functional/pooling.h.
#include "torch/nn/functional/pooling.h"

#include "ops/patches.h"
#include "ops/pooling.h"
#include "ops/unpooling.h"
#include "torch/nn/convert.h"

namespace torch::nn::functional {

namespace {

std::tuple<Tensor, Tensor> as_tuple(retrograd::MaxPoolResult result) {
  return {std::move(result.values), std::move(result.indices)};
}

template <size_t D>
retrograd::FractionalSize fractional_size(const FractionalMaxPoolOptions<D>& options) {
  retrograd::FractionalSize size;
  if (options.output_size()) size.output_size = *options.output_size();
  if (options.output_ratio()) size.output_ratio = options.output_ratio()->vec();
  return size;
}

retrograd::IntList given(const std::optional<std::vector<int64_t>>& list) {
  return list ? retrograd::IntList(*list) : retrograd::IntList();
}

}  // namespace

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
Tensor max_unpool1d(Operand input, const Tensor& indices, const MaxUnpool1dFuncOptions& options) {
  return retrograd::max_unpool1d(input, indices, options.kernel_size(), options.stride(), options.padding(),
                                 given(options.output_size()));
}
Tensor max_unpool2d(Operand input, const Tensor& indices, const MaxUnpool2dFuncOptions& options) {
  return retrograd::max_unpool2d(input, indices, options.kernel_size(), options.stride(), options.padding(),
                                 given(options.output_size()));
}
Tensor max_unpool3d(Operand input, const Tensor& indices, const MaxUnpool3dFuncOptions& options) {
  return retrograd::max_unpool3d(input, indices, options.kernel_size(), options.stride(), options.padding(),
                                 given(options.output_size()));
}
Tensor fractional_max_pool2d(Operand input, const FractionalMaxPool2dFuncOptions& options) {
  return std::get<0>(fractional_max_pool2d_with_indices(input, options));
}
Tensor fractional_max_pool3d(Operand input, const FractionalMaxPool3dFuncOptions& options) {
  return std::get<0>(fractional_max_pool3d_with_indices(input, options));
}

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
std::tuple<Tensor, Tensor> fractional_max_pool2d_with_indices(Operand input,
                                                              const FractionalMaxPool2dFuncOptions& options) {
  return as_tuple(retrograd::fractional_max_pool2d_with_indices(
      input, options.kernel_size(), fractional_size(options), options._random_samples()));
}
std::tuple<Tensor, Tensor> fractional_max_pool3d_with_indices(Operand input,
                                                              const FractionalMaxPool3dFuncOptions& options) {
  return as_tuple(retrograd::fractional_max_pool3d_with_indices(
      input, options.kernel_size(), fractional_size(options), options._random_samples()));
}

}  // namespace torch::nn::functional
