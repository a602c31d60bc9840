// See nn/patches.h.
#include "nn/patches.h"

#include <fmt/format.h>

#include "ops/channels.h"
#include "ops/patches.h"

namespace retrograd::inline v0::nn {
namespace {

std::string windows_text(const IntList& kernel_size, const UnfoldOptions& options) {
  return fmt::format("kernel_size={}, dilation={}, padding={}, stride={}", detail::list_text(kernel_size, 2),
                     detail::list_text(options.dilation, 2), detail::list_text(options.padding, 2),
                     detail::list_text(options.stride, 2));
}

}  // namespace

Tensor Unfold::forward(Operand x) const {
  return im2col(x, kernel_size, options.dilation, options.padding, options.stride);
}
std::string Unfold::extra_repr() const { return windows_text(kernel_size, options); }

Tensor Fold::forward(Operand x) const {
  return col2im(x, output_size, kernel_size, options.dilation, options.padding, options.stride);
}
std::string Fold::extra_repr() const {
  return fmt::format("output_size={}, {}", detail::list_text(output_size, 2),
                     windows_text(kernel_size, options));
}

Tensor PixelShuffle::forward(Operand x) const { return pixel_shuffle(x, factor); }
std::string PixelShuffle::extra_repr() const { return fmt::format("upscale_factor={}", factor); }

Tensor PixelUnshuffle::forward(Operand x) const { return pixel_unshuffle(x, factor); }
std::string PixelUnshuffle::extra_repr() const { return fmt::format("downscale_factor={}", factor); }

Tensor ChannelShuffle::forward(Operand x) const { return channel_shuffle(x, factor); }
std::string ChannelShuffle::extra_repr() const { return fmt::format("groups={}", factor); }

Unfold::Unfold(Module* parent, std::string name, const IntList& kernel_size, UnfoldOptions options)
    : Layer(parent, std::move(name)), kernel_size(kernel_size), options(options) {}
std::tuple<IntList, UnfoldOptions> Unfold::arguments() const { return {kernel_size, options}; }

Fold::Fold(Module* parent, std::string name, const IntList& output_size, const IntList& kernel_size,
           UnfoldOptions options)
    : Layer(parent, std::move(name)),
      output_size(output_size),
      kernel_size(kernel_size),
      options(options) {}
std::tuple<IntList, IntList, UnfoldOptions> Fold::arguments() const {
  return {output_size, kernel_size, options};
}

}  // namespace retrograd::nn
