// The type that reductions accumulate in, for the CPU's kernels and for those of a device: double for floating elements, so that partial sums
// and products of float32 neither lose digits nor leave the range; 64-bit integers for the others.
#pragma once

#include <cstdint>

namespace retrograd {

/// Of a type that elements are computed in: float, double or int64_t.
template <class T>
struct Accumulated {
  using Type = double;
};
template <>
struct Accumulated<int64_t> {
  using Type = int64_t;
};

}  // namespace retrograd
