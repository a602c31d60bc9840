// Pooling and interpolation in plain data: made by cuda/kernels/grids.cc from a Call, used by the launchers of
// cuda/kernels/grids.cu.
//
// An op on grids multiplies by a sparse matrix along each axis (cpu/kernels/windows.h): it tells which elements
// contribute to a result, with which weight. The host computes these, once per call, and copies them to device memory.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace retrograd::inline v0::cuda {

enum class Element : uint8_t;

struct GridAxis {
  int64_t in = 1, out = 1, step = 1;
  const int64_t *first = nullptr, *count = nullptr;  // of each result
  const int64_t* start = nullptr;                    // where its weights begin
  const double* weight = nullptr;                    // null: all 1
  const double* divisor = nullptr;                   // of elements or of results; null: none
};

enum class GridDivision : uint8_t { none, before, after };

struct GridCall {
  const void* x = nullptr;
  Element element{};  // of x and out
  void* out = nullptr;
  int64_t* places = nullptr;  // of the largest elements; row-major, like out
  GridAxis axis[3];           // depth, height, width
  GridDivision division{};
  int64_t volumes = 1,
          stride[3] = {};  // x: the dims outside of the grid, and the strides of those in the grid
  int outer_rank = 0;
  int64_t outer_size[8] = {}, outer_stride[8] = {};
};

/// g added at positions of volumes of zeros: g and places (volumes, elements), with any strides.
struct PlacesCall {
  const void* g = nullptr;
  const void* places = nullptr;  // int64
  Element element{};             // of g and out
  void* out = nullptr;
  void* sums = nullptr;  // in the compute type; may be out
  int64_t volumes = 1, elements = 0, volume_size = 0;
  int rank = 0;
  int64_t size[8] = {}, stride[8][2] = {};  // of g and places
};

using GridLauncher = void (*)(const GridCall&, CUstream_st* stream);
using PlacesLauncher = void (*)(const PlacesCall&, CUstream_st* stream);

/// By compute type.
struct GridRow {
  GridLauncher resample_f32, resample_f64, resample_i64, max_f32, max_f64, max_i64;
  PlacesLauncher places_f32, places_f64;
};

}  // namespace retrograd::cuda
