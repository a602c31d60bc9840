// Geometry: how a view lies in the memory of its base.
#pragma once

#include "engine/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

/// A view by strides and an offset from the operand's first element: the attributes of `as_strided`.
struct Geometry {
  Shape size, stride;
  Dim offset = 0;
  Shape base_stride;          // the layout of the operand
  bool base_is_dense = true;  // row-major: base_stride is redundant
  void visit(AttrVisitor& v) {
    v.field("size", size);
    v.field("stride", stride);
    v.field("offset", offset);
    v.field("base_stride", base_stride);
    v.field("base_is_dense", base_is_dense);
  }
};
/// The geometry of `view` in the memory of `base`, both of which have storage.
Geometry geometry_of(const TensorImpl& view, const TensorImpl& base);

}  // namespace retrograd::ops
#pragma GCC visibility pop
