// How kernels number the work of their threads: Axes as a StridedGrid. And elements that are moved by their width.
#pragma once

#include <cstring>

#include "cuda/kernels/axes.h"
#include "cuda/kernels/strided.h"

namespace retrograd::inline v0::cuda::RG_TARGET {

/// `axes` has elements.
template <int Sides>
StridedGrid<Sides> grid_of(const Axes<Sides>& axes) {
  StridedGrid<Sides> grid(axes.numel);
  for (int d = 0; d < axes.rank; ++d) grid.add(axes.size[d], axes.stride[d]);
  return grid;
}

/// An element that is moved without interpreting its value.
struct alignas(16) Bits128 {
  uint64_t low, high;
};

/// Calls f with a value of a type that is `width` bytes wide: 1, 2, 4, 8 or 16.
template <class F>
void by_width(int width, const F& f) {
  switch (width) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    default: return f(Bits128{});
  }
}

}  // namespace retrograd::cuda::RG_TARGET
