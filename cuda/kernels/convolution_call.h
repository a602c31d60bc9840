// Convolutions in plain data: what cuda/kernels/convolution.cc makes of a Call, and what the launchers of cuda/kernels/convolution.cu take.
//
// As in ops/convolution.h there are a large side x (batch, channels, places), a small one g (batch, features, places) and a weight w
// (features, channels of a group, places of the kernel); place o of the small side and t of the kernel meet i = o * stride + t * dilation -
// padding of the large one. Two of the three are given, the third is wanted. There are always three spatial dims, missing ones of size 1 in
// front.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace retrograd::cuda {

enum class Element : uint8_t;

/// Strides in elements.
struct ConvolutionSide {
  void* data = nullptr;
  int64_t first = 0, second = 0, place[3] = {};
};

enum class ConvolutionWanted : uint8_t { small, large, weight };

struct ConvolutionCall {
  ConvolutionWanted wanted{};
  Element element{};  // of all sides
  ConvolutionSide x, g, w;
  const void* bias = nullptr;  // null, or a number for each channel of the result
  int64_t bias_step = 0;
  int64_t batch = 1, groups = 1, channels = 1, features = 1;  // the last two of a group
  int64_t large[3] = {1, 1, 1}, small[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, padding[3] = {}, dilation[3] = {1, 1, 1};

  // The result as groups of matrices (rows, columns), each element a sum of so many terms.
  int64_t rows = 1, columns = 1, terms = 1;
  // How it is cut, by sizes alone.
  int lanes = 0;             // threads of a result; 0: by tiles
  int splits = 1;            // parts of a sum, which blocks of their own compute
  int64_t part = 0;          // terms of a part
  void* partials = nullptr;  // 8 bytes for each part of each result, if splits > 1
};

using ConvolutionLauncher = void (*)(const ConvolutionCall&, CUstream_st* stream);

/// By what is computed in.
struct ConvolutionRow {
  ConvolutionLauncher f32, f64, i64;
};
inline constexpr int kConvolutionsWanted = 3;

}  // namespace retrograd::cuda
