// Convolutions in plain data: made by cuda/kernels/convolution.cc from a Call, used by the launchers of
// cuda/kernels/convolution.cu.
//
// As in ops/convolution.h there are a large side x (batch, channels, positions), a small one g (batch, features,
// positions) and a weight w (features, channels of a group, positions in the kernel); position o of the small side and
// t of the kernel meet i = o * stride + t * dilation - padding of the large one. Two of the three are given, the third
// is wanted. There are always three spatial dims; missing ones have size 1 and come first.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace retrograd::inline v0::cuda {

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
  int64_t batch = 1, groups = 1, channels = 1, features = 1;  // the last two per group
  int64_t large[3] = {1, 1, 1}, small[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, padding[3] = {}, dilation[3] = {1, 1, 1};

  // The result as groups of matrices (rows, columns), where each element is a sum of `terms` terms.
  int64_t rows = 1, columns = 1, terms = 1;
  // How it is split, by sizes only.
  int lanes = 0;             // threads of a result; 0: by tiles
  int splits = 1;            // parts of a sum, computed by separate blocks
  int64_t part = 0;          // terms of a part
  void* partials = nullptr;  // 8 bytes for each part of each result, if splits > 1
};

using ConvolutionLauncher = void (*)(const ConvolutionCall&, CUstream_st* stream);

/// By compute type.
struct ConvolutionRow {
  ConvolutionLauncher f32, f64, i64;
};
inline constexpr int kConvolutionsWanted = 3;

}  // namespace retrograd::cuda
