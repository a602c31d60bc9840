// What type rules and public functions of several families share.
#pragma once

#include <span>

#include "ops/views.h"

namespace retrograd::inline v0 {
namespace ops {

/// Offsets of diagonals and bounds of slices beyond it are clamped to it: it fits into a Dim, also after a size is added
/// or subtracted.
inline constexpr int64_t kFarthest = INT64_MAX - (int64_t{1} << 32);

inline Shape without_last(const Shape& shape) {
  return Shape(std::span(shape.begin(), static_cast<size_t>(shape.rank() - 1)));
}

/// The type of `out` is that of `like` with another shape.
inline void set_like(const TensorImpl& like, const Shape& shape, TensorImpl& out) {
  out.set_type(like.dtype(), like.device(), shape);
}

/// The dtype of statistics of floating elements: float32 for 16 bits, else their own.
inline ScalarType wide_dtype(ScalarType dtype) { return dtype == kFloat64 ? kFloat64 : kFloat32; }

}  // namespace ops

inline const Shape& shape_of(Operand x) { return x.tensor().impl().shape(); }

/// x as one dim.
inline Tensor flat(const Tensor& x, SourceLocation where) {
  return reshape_to(Operand(x, where), {x.impl().numel()});
}

}  // namespace retrograd
