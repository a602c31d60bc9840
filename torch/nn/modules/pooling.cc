// See torch/nn/modules/pooling.h.
#include "torch/nn/modules/pooling.h"

#include "torch/nn/convert.h"

namespace torch::nn {

namespace {

template <size_t D>
rn::MaxPoolOptions layer_options(const MaxPoolOptions<D>& o) {
  return {.stride = o.stride(), .padding = o.padding(), .dilation = o.dilation(), .ceil_mode = o.ceil_mode()};
}

template <size_t D>
rn::AvgPoolOptions layer_options(const AvgPoolOptions<D>& o) {
  return {.stride = o.stride(),
          .padding = o.padding(),
          .ceil_mode = o.ceil_mode(),
          .count_include_pad = o.count_include_pad(),
          .divisor_override = o.divisor_override()};
}

template <size_t D>
rn::FractionalMaxPoolOptions layer_options(const FractionalMaxPoolOptions<D>& o) {
  rn::FractionalMaxPoolOptions to;
  if (o.output_size()) to.output_size = *o.output_size();
  if (o.output_ratio()) to.output_ratio = o.output_ratio()->vec();
  to.random_samples = o._random_samples();
  return to;
}

std::tuple<Tensor, Tensor> as_tuple(retrograd::MaxPoolResult result) {
  return {std::move(result.values), std::move(result.indices)};
}

}  // namespace

MaxPool1dImpl::MaxPool1dImpl(const MaxPool1dOptions& o) : Wrapped(o, o.kernel_size(), layer_options(o)) {}
MaxPool2dImpl::MaxPool2dImpl(const MaxPool2dOptions& o) : Wrapped(o, o.kernel_size(), layer_options(o)) {}
MaxPool3dImpl::MaxPool3dImpl(const MaxPool3dOptions& o) : Wrapped(o, o.kernel_size(), layer_options(o)) {}
AvgPool1dImpl::AvgPool1dImpl(const AvgPool1dOptions& o) : Wrapped(o, o.kernel_size(), layer_options(o)) {}
AvgPool2dImpl::AvgPool2dImpl(const AvgPool2dOptions& o) : Wrapped(o, o.kernel_size(), layer_options(o)) {}
AvgPool3dImpl::AvgPool3dImpl(const AvgPool3dOptions& o) : Wrapped(o, o.kernel_size(), layer_options(o)) {}
LPPool1dImpl::LPPool1dImpl(const LPPool1dOptions& o)
    : Wrapped(o, o.norm_type(), o.kernel_size(),
              rn::LPPoolOptions{.stride = o.stride(), .ceil_mode = o.ceil_mode()}) {}
LPPool2dImpl::LPPool2dImpl(const LPPool2dOptions& o)
    : Wrapped(o, o.norm_type(), o.kernel_size(),
              rn::LPPoolOptions{.stride = o.stride(), .ceil_mode = o.ceil_mode()}) {}
LPPool3dImpl::LPPool3dImpl(const LPPool3dOptions& o)
    : Wrapped(o, o.norm_type(), o.kernel_size(),
              rn::LPPoolOptions{.stride = o.stride(), .ceil_mode = o.ceil_mode()}) {}
MaxUnpool1dImpl::MaxUnpool1dImpl(const MaxUnpool1dOptions& o)
    : Wrapped(o, o.kernel_size(), rn::MaxUnpoolOptions{.stride = o.stride(), .padding = o.padding()}) {}
MaxUnpool2dImpl::MaxUnpool2dImpl(const MaxUnpool2dOptions& o)
    : Wrapped(o, o.kernel_size(), rn::MaxUnpoolOptions{.stride = o.stride(), .padding = o.padding()}) {}
MaxUnpool3dImpl::MaxUnpool3dImpl(const MaxUnpool3dOptions& o)
    : Wrapped(o, o.kernel_size(), rn::MaxUnpoolOptions{.stride = o.stride(), .padding = o.padding()}) {}
FractionalMaxPool2dImpl::FractionalMaxPool2dImpl(const FractionalMaxPool2dOptions& o)
    : Wrapped(o, o.kernel_size(), layer_options(o)) {}
FractionalMaxPool3dImpl::FractionalMaxPool3dImpl(const FractionalMaxPool3dOptions& o)
    : Wrapped(o, o.kernel_size(), layer_options(o)) {}
AdaptiveAvgPool1dImpl::AdaptiveAvgPool1dImpl(const AdaptiveAvgPool1dOptions& o)
    : Wrapped(o, adaptive_size(o.output_size())) {}
AdaptiveAvgPool2dImpl::AdaptiveAvgPool2dImpl(const AdaptiveAvgPool2dOptions& o)
    : Wrapped(o, adaptive_size(o.output_size())) {}
AdaptiveAvgPool3dImpl::AdaptiveAvgPool3dImpl(const AdaptiveAvgPool3dOptions& o)
    : Wrapped(o, adaptive_size(o.output_size())) {}
AdaptiveMaxPool1dImpl::AdaptiveMaxPool1dImpl(const AdaptiveMaxPool1dOptions& o)
    : Wrapped(o, adaptive_size(o.output_size())) {}
AdaptiveMaxPool2dImpl::AdaptiveMaxPool2dImpl(const AdaptiveMaxPool2dOptions& o)
    : Wrapped(o, adaptive_size(o.output_size())) {}
AdaptiveMaxPool3dImpl::AdaptiveMaxPool3dImpl(const AdaptiveMaxPool3dOptions& o)
    : Wrapped(o, adaptive_size(o.output_size())) {}

#define RG_FORWARD_WITH_INDICES(NAME)                                                \
  std::tuple<Tensor, Tensor> NAME##Impl::forward_with_indices(Operand input) const { \
    return as_tuple(rn::NAME::forward_with_indices(input));                          \
  }
RG_FORWARD_WITH_INDICES(MaxPool1d)
RG_FORWARD_WITH_INDICES(MaxPool2d)
RG_FORWARD_WITH_INDICES(MaxPool3d)
RG_FORWARD_WITH_INDICES(AdaptiveMaxPool1d)
RG_FORWARD_WITH_INDICES(AdaptiveMaxPool2d)
RG_FORWARD_WITH_INDICES(AdaptiveMaxPool3d)
RG_FORWARD_WITH_INDICES(FractionalMaxPool2d)
RG_FORWARD_WITH_INDICES(FractionalMaxPool3d)
#undef RG_FORWARD_WITH_INDICES

}  // namespace torch::nn
