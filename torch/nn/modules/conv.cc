// See torch/nn/modules/conv.h.
#include "torch/nn/modules/conv.h"

#include "torch/nn/convert.h"

namespace torch::nn {

namespace {

template <size_t D>
rn::ConvOptions layer_options(const ConvOptions<D>& o) {
  return {.stride = o.stride(),
          .padding = conv_padding(o.padding()),
          .dilation = o.dilation(),
          .groups = o.groups(),
          .bias = o.bias(),
          .padding_mode = enumtype::text_of(o.padding_mode())};
}

/// Error(bad_argument) for a padding mode: transposed convolutions have none but zeros.
template <size_t D>
rn::ConvTransposeOptions layer_options(const ConvTransposeOptions<D>& o) {
  if (!std::holds_alternative<enumtype::kZeros>(o.padding_mode()))
    retrograd::fail(retrograd::Category::bad_argument, "ConvTranspose", "the padding mode must be kZeros");
  return {.stride = o.stride(),
          .padding = o.padding(),
          .output_padding = o.output_padding(),
          .groups = o.groups(),
          .bias = o.bias(),
          .dilation = o.dilation()};
}

}  // namespace

Conv1dImpl::Conv1dImpl(const Conv1dOptions& o)
    : Wrapped(o, o.in_channels(), o.out_channels(), o.kernel_size(), layer_options(o)) {}
Conv2dImpl::Conv2dImpl(const Conv2dOptions& o)
    : Wrapped(o, o.in_channels(), o.out_channels(), o.kernel_size(), layer_options(o)) {}
Conv3dImpl::Conv3dImpl(const Conv3dOptions& o)
    : Wrapped(o, o.in_channels(), o.out_channels(), o.kernel_size(), layer_options(o)) {}
ConvTranspose1dImpl::ConvTranspose1dImpl(const ConvTranspose1dOptions& o)
    : Wrapped(o, o.in_channels(), o.out_channels(), o.kernel_size(), layer_options(o)) {}
ConvTranspose2dImpl::ConvTranspose2dImpl(const ConvTranspose2dOptions& o)
    : Wrapped(o, o.in_channels(), o.out_channels(), o.kernel_size(), layer_options(o)) {}
ConvTranspose3dImpl::ConvTranspose3dImpl(const ConvTranspose3dOptions& o)
    : Wrapped(o, o.in_channels(), o.out_channels(), o.kernel_size(), layer_options(o)) {}

}  // namespace torch::nn
