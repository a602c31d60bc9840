// grid_sample in plain data: made by cuda/kernels/grid_sample.cc from a Call, used by the launchers of
// cuda/kernels/grid_sample.cu. All tensors are row-major; a picture of two dims has depth 1.
#pragma once

#include <cstdint>

#include "ops/grid_taps.h"

struct CUstream_st;

namespace retrograd::inline v0::cuda {

enum class Element : uint8_t;

struct GridSampleCall {
  const void *x = nullptr, *grid = nullptr, *g = nullptr;
  void* out = nullptr;
  Element
      element{};  // of operands, and of results other than those of the transpose, which are of the computed type
  ops::GridMode mode{};
  ops::GridPadding padding{};
  bool align_corners = false;
  int dims = 2, order[3] = {};
  int64_t batch = 0, channels = 0, points = 0, size[3] = {1, 1, 1};  // depth, height, width
};
using GridSampleLauncher = void (*)(const GridSampleCall&, CUstream_st* stream);

struct GridSampleLaunchers {
  GridSampleLauncher sample;     // x, grid
  GridSampleLauncher transpose;  // g, grid
  GridSampleLauncher slope;      // g, x, grid
};

}  // namespace retrograd::cuda
