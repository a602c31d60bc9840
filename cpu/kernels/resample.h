// Linear maps of grids that act on each axis separately: averages over windows, interpolation, and their transposes.
//
// Such a map is a product of one Axis (cpu/kernels/windows.h) for each of the last dims. It is applied to
// bands of result rows: along the width first, or along the height first, whichever is cheaper by sizes;
// along the depth while rows are read. Averages are sums of elements that are divided once; their
// transposes divide before they add. Small floats are computed in float, and rounded once.
#pragma once

#include "cpu/kernels/windows.h"
#include "engine/tensor_impl.h"

namespace retrograd::inline v0::cpu {

struct GridMap {
  enum class Division : uint8_t { none, before, after };

  Axis axes[3] = {{}, {}, {}};  // depth, height, width
  int dims = 2;                 // how many of them the tensors have, from the last
  // An element is divided by the product of its divisors along the axes: of the operand before, of the
  // result after.
  Division division = Division::none;
  std::vector<double> divisors[3] = {{1}, {1}, {1}};
};

/// Writes the map of x to `out`, which is row-major and has x's dtype: floating, or int64 where all weights
/// are 1.
void resample(const TensorImpl& x, const GridMap& map, TensorImpl& out);

}  // namespace retrograd::cpu
