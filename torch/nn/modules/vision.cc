// See torch/nn/modules/vision.h.
#include "torch/nn/modules/vision.h"

#include "torch/nn/convert.h"

namespace torch::nn {

FoldImpl::FoldImpl(const FoldOptions& o)
    : Wrapped(o, o.output_size(), o.kernel_size(),
              rn::UnfoldOptions{.dilation = o.dilation(), .padding = o.padding(), .stride = o.stride()}) {}
UnfoldImpl::UnfoldImpl(const UnfoldOptions& o)
    : Wrapped(o, o.kernel_size(),
              rn::UnfoldOptions{.dilation = o.dilation(), .padding = o.padding(), .stride = o.stride()}) {}
PixelShuffleImpl::PixelShuffleImpl(const PixelShuffleOptions& o) : Wrapped(o, o.upscale_factor()) {}
PixelUnshuffleImpl::PixelUnshuffleImpl(const PixelUnshuffleOptions& o) : Wrapped(o, o.downscale_factor()) {}
UpsampleImpl::UpsampleImpl(const UpsampleOptions& o)
    : Wrapped(o, retrograd::InterpolateOptions{.size = per_dim(o.size()),
                                               .scale_factor = per_dim(o.scale_factor()),
                                               .mode = enumtype::text_of(o.mode()),
                                               .align_corners = o.align_corners()}) {}

}  // namespace torch::nn
