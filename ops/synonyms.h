// Other names that libtorch has for functions: subtract is sub, less is lt, clip is clamp. Shapes, dtypes and errors
// are those of the function that each calls; errors begin with that function's name.
#pragma once

#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/matmul.h"
#include "ops/sort.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/views.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

inline Tensor absolute(const Operand& input) { return abs(input); }
inline Tensor negative(const Operand& input) { return neg(input); }
inline Tensor fix(const Operand& input) { return trunc(input); }
inline Tensor arccos(const Operand& input) { return acos(input); }
inline Tensor arcsin(const Operand& input) { return asin(input); }
inline Tensor arctan(const Operand& input) { return atan(input); }
inline Tensor arccosh(const Operand& input) { return acosh(input); }
inline Tensor arcsinh(const Operand& input) { return asinh(input); }
inline Tensor arctanh(const Operand& input) { return atanh(input); }
inline Tensor arctan2(const Operand& input, const Operand& other) { return atan2(input, other); }

inline Tensor subtract(const Operand& input, const Operand& other, Scalar alpha = 1) {
  return sub(input, other, alpha);
}
inline Tensor multiply(const Operand& input, const Operand& other) { return mul(input, other); }
inline Tensor divide(const Operand& input, const Operand& other, std::string_view rounding_mode = {}) {
  return div(input, other, rounding_mode);
}
inline Tensor true_divide(const Operand& input, const Operand& other) { return div(input, other); }

inline Tensor less(const Operand& input, const Operand& other) { return lt(input, other); }
inline Tensor less_equal(const Operand& input, const Operand& other) { return le(input, other); }
inline Tensor greater(const Operand& input, const Operand& other) { return gt(input, other); }
inline Tensor greater_equal(const Operand& input, const Operand& other) { return ge(input, other); }
inline Tensor not_equal(const Operand& input, const Operand& other) { return ne(input, other); }

inline Tensor clip(const Operand& input, std::optional<Operand> min = {}, std::optional<Operand> max = {}) {
  return clamp(input, min, max);
}
inline Tensor max(const Operand& input, const Tensor& other) { return maximum(input, other); }
inline Tensor min(const Operand& input, const Tensor& other) { return minimum(input, other); }

inline Tensor ger(const Operand& input, const Operand& vec2) { return outer(input, vec2); }
inline Tensor vdot(const Operand& input, const Operand& other) { return dot(input, other); }
inline Tensor msort(const Operand& input) { return sort(input, 0).values; }
/// The last two dims exchanged. Error(bad_dim) for fewer dims.
inline Tensor mT(const Operand& input) { return transpose(input, -2, -1); }
inline Tensors split_with_sizes(const Operand& input, const IntArray& split_sizes, int64_t dim = 0) {
  return split(input, split_sizes, dim);
}
/// Sums over dims down to `size`, to which the input's shape must be what `size` broadcasts to: Error(shape_mismatch)
/// otherwise. torch.Tensor.sum_to_size.
Tensor sum_to_size(Operand input, const Shape& size);

}  // namespace retrograd
#pragma GCC visibility pop
