// What kernels number their threads' work by: Axes as a StridedGrid, and quotients by numbers that are known
// before the launch.
#pragma once

#include <cstring>

#include "cuda/kernels/axes.h"
#include "cuda/kernels/strided.h"

namespace retrograd::cuda::RG_TARGET {

/// `axes` has elements.
template <int Sides>
StridedGrid<Sides> grid_of(const Axes<Sides>& axes) {
  StridedGrid<Sides> grid{};
  grid.numel = axes.numel;
  grid.rank = axes.rank;
  grid.is_wide = axes.numel >= (int64_t{1} << 31);
  for (int d = 0; d < axes.rank; ++d) {
    grid.size[d] = axes.size[d];
    if (!grid.is_wide) grid.divider[d] = Divider(static_cast<uint32_t>(axes.size[d]));
    for (int s = 0; s < Sides; ++s) grid.stride[d][s] = axes.stride[d][s];
  }
  return grid;
}

/// n / divisor for 0 <= n < `numbers`, divisor >= 1.
struct Quotient {
  int64_t divisor = 1;
  bool is_wide = true;
  Divider divider;

  Quotient() = default;
  Quotient(int64_t divisor, int64_t numbers)
      : divisor(divisor), is_wide(numbers > (int64_t{1} << 31) || divisor >= (int64_t{1} << 31)) {
    if (!is_wide) divider = Divider(static_cast<uint32_t>(divisor));
  }
  RG_HD int64_t operator()(int64_t n) const {
    return is_wide ? n / divisor : divider.quotient(static_cast<uint32_t>(n));
  }
};

/// An element that is moved without a look at its value.
struct alignas(16) Bits128 {
  uint64_t low, high;
};

/// Calls f with a value of the type that is `width` bytes wide: 1, 2, 4, 8 or 16.
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
