// See torch/nn/functional/vision.h.
#include "torch/nn/functional/vision.h"

#include "nn/functional.h"
#include "ops/rearrange.h"
#include "torch/nn/convert.h"

namespace torch::nn::functional {

using enumtype::text_of;

Tensor pad(Operand input, const PadFuncOptions& options) {
  const bool has_value = std::holds_alternative<enumtype::kConstant>(options.mode()) || options.value() != 0;
  return retrograd::pad(input, options.pad(), text_of(options.mode()),
                        has_value ? std::optional<retrograd::Scalar>(options.value()) : std::nullopt);
}
Tensor fold(Operand input, const FoldFuncOptions& options) {
  return retrograd::nn::functional::fold(input, options.output_size(), options.kernel_size(),
                                         options.dilation(), options.padding(), options.stride());
}
Tensor unfold(Operand input, const UnfoldFuncOptions& options) {
  return retrograd::nn::functional::unfold(input, options.kernel_size(), options.dilation(),
                                           options.padding(), options.stride());
}
Tensor pixel_shuffle(Operand input, const PixelShuffleFuncOptions& options) {
  return retrograd::pixel_shuffle(input, options.upscale_factor());
}
Tensor pixel_unshuffle(Operand input, const PixelUnshuffleFuncOptions& options) {
  return retrograd::pixel_unshuffle(input, options.downscale_factor());
}
Tensor interpolate(Operand input, const InterpolateFuncOptions& options) {
  return retrograd::interpolate(input,
                                {.size = per_dim(options.size()),
                                 .scale_factor = per_dim(options.scale_factor()),
                                 .mode = text_of(options.mode()),
                                 .align_corners = options.align_corners(),
                                 .recompute_scale_factor = options.recompute_scale_factor().value_or(false),
                                 .antialias = options.antialias()});
}
Tensor grid_sample(Operand input, const Tensor& grid, const GridSampleFuncOptions& options) {
  return retrograd::grid_sample(input, grid, text_of(options.mode()), text_of(options.padding_mode()),
                                options.align_corners());
}
Tensor affine_grid(Operand theta, const std::vector<int64_t>& size, bool align_corners) {
  return retrograd::affine_grid(theta, retrograd::Shape(size), align_corners);
}

}  // namespace torch::nn::functional
