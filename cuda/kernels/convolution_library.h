// Convolutions of cuda/kernels/convolution.cc by the vendor's library (cuda/dnn.h).
#pragma once

#include "cuda/kernels/convolution_call.h"
#include "engine/op.h"

namespace retrograd::inline v0::cuda {

/// The three sides; `c.wanted` of them is the result.
struct ConvolutionTensors {
  TensorImpl *x, *g, *w;
};

/// Launches the convolution with its bias (null: none) on Gpu::current(), or returns false: the library is missing, not
/// to be used, or declines. Sums have terms.
bool convolve_by_library(const Call& call, const ConvolutionCall& c, const ConvolutionTensors& sides,
                         const TensorImpl* bias);

}  // namespace retrograd::cuda
