// Padding, folds, pixel shuffles and resampling as functions.
#pragma once

#include "torch/nn/names.h"
#include "torch/nn/options/padding.h"
#include "torch/nn/options/vision.h"

#pragma GCC visibility push(default)
namespace torch::nn::functional {

Tensor pad(Operand input, const PadFuncOptions& options);
Tensor fold(Operand input, const FoldFuncOptions& options);
Tensor unfold(Operand input, const UnfoldFuncOptions& options);
Tensor pixel_shuffle(Operand input, const PixelShuffleFuncOptions& options);
Tensor pixel_unshuffle(Operand input, const PixelUnshuffleFuncOptions& options);
Tensor interpolate(Operand input, const InterpolateFuncOptions& options = {});
Tensor grid_sample(Operand input, const Tensor& grid, const GridSampleFuncOptions& options = {});
Tensor affine_grid(Operand theta, const std::vector<int64_t>& size, bool align_corners = false);

}  // namespace torch::nn::functional
#pragma GCC visibility pop
