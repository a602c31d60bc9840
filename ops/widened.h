// Formulas of several ops, computed in a wider dtype.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

/// float32 for 16-bit tensors, else their own dtype: a formula made of several ops is then rounded once, at its end,
/// and its intermediate results have the range of float32.
///
///   const Widened wide(t);
///   return wide.back(wide(t) * digamma(wide(x)));
class Widened {
 public:
  explicit Widened(const Tensor& like);
  Tensor operator()(const Tensor& x) const;
  /// The result rounded; an undefined one stays undefined.
  Tensor back(const Tensor& result) const;

 private:
  ScalarType dtype_, wide_;
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
