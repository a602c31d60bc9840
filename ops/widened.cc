// See ops/widened.h.
#include "ops/widened.h"

#include "ops/shape_ops.h"

namespace retrograd::inline v0::ops {

Widened::Widened(const Tensor& like)
    : dtype_(like.dtype()), wide_(dtype_ == kFloat16 || dtype_ == kBFloat16 ? kFloat32 : dtype_) {}

Tensor Widened::operator()(const Tensor& x) const { return x.dtype() == wide_ ? x : to(x, wide_); }

Tensor Widened::back(const Tensor& result) const {
  return !result.defined() || wide_ == dtype_ ? result : to(result, dtype_);
}

}  // namespace retrograd::ops
