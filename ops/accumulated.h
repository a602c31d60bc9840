// The type that reductions accumulate in, on the CPU and on devices: double for floating elements, so that partial sums
// and products of float32 neither lose digits nor leave the range; 64-bit integers for all other types.
#pragma once

#include <cstdint>

namespace retrograd::inline v0 {

/// For a type that elements are computed in: float, double or int64_t.
template <class T>
struct Accumulated {
  using Type = double;
};
template <>
struct Accumulated<int64_t> {
  using Type = int64_t;
};

}  // namespace retrograd
