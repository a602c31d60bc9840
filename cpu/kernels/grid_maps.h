// The effect of pooling and interpolation on each axis, as numbers: for the kernels of every device (cuda/ includes
// this header).
//
// A GridMap has one Axis for each of the last dims (cpu/kernels/windows.h): a sparse matrix. x is the larger
// grid of a pool, the operand of an interpolation; y is the other side. The transposed ops have x and y
// exchanged. Implemented by cpu/kernels/pooling.cc and interpolate.cc, next to their kernels.
#pragma once

#include "cpu/kernels/resample.h"
#include "ops/interpolate.h"
#include "ops/pooling.h"

namespace retrograd::inline v0::cpu {

GridMap average_map(const ops::AvgPoolAttrs& attrs, const TensorImpl& x, const TensorImpl& y);
GridMap adaptive_map(const ops::GridSize& attrs, const TensorImpl& x, const TensorImpl& y);
GridMap interpolation_map(const ops::InterpolateAttrs& attrs, const TensorImpl& x, const TensorImpl& y);
/// The axes of the windows of a max pool; returns how many of them x has.
int max_pool_axes(const ops::MaxPool::Attrs& attrs, const TensorImpl& x, const TensorImpl& y,
                  Axis (&axes)[3]);
int max_pool_axes(const ops::GridSize& attrs, const TensorImpl& x, const TensorImpl& y, Axis (&axes)[3]);
/// Transposes the map; a division after it becomes one before it.
void turn(GridMap& map);

}  // namespace retrograd::cpu
