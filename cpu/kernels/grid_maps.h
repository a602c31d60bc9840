// What pooling and interpolation do to each axis, as numbers: for the kernels of every device. x is the larger grid of a pool, the operand
// of an interpolation; y the other side. The transposed ops have them turned.
#pragma once

#include "cpu/kernels/resample.h"
#include "ops/interpolate.h"
#include "ops/pooling.h"

namespace retrograd::cpu {

GridMap average_map(const ops::AvgPoolAttrs& attrs, const TensorImpl& x, const TensorImpl& y);
GridMap adaptive_map(const ops::GridSize& attrs, const TensorImpl& x, const TensorImpl& y);
GridMap interpolation_map(const ops::InterpolateAttrs& attrs, const TensorImpl& x, const TensorImpl& y);
/// The axes of the windows whose largest elements are wanted; how many of them x has.
int max_pool_axes(const ops::MaxPool::Attrs& attrs, const TensorImpl& x, const TensorImpl& y,
                  Axis (&axes)[3]);
int max_pool_axes(const ops::GridSize& attrs, const TensorImpl& x, const TensorImpl& y, Axis (&axes)[3]);
/// The transposed map; what was divided after is divided before.
void turn(GridMap& map);

}  // namespace retrograd::cpu
