// Operators on tensors beside those of ops/arithmetic.h, as in libtorch: comparisons (which give a bool tensor, so they
// are no conditions of `if`), %, &, |, ^, <<, >>, ~, !, and compound assignment.
//
// Compound assignment writes in place, through a view too: x[0] += 1. It is a.f_(b) with the same errors
// (engine/inplace.h). A number may stand for one operand. This header is for users; the library calls the functions.
#pragma once

#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/bitwise.h"
#include "ops/comparison.h"
#include "ops/unary.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

inline Tensor operator==(const Operand& a, const Operand& b) { return eq(a, b); }
inline Tensor operator!=(const Operand& a, const Operand& b) { return ne(a, b); }
inline Tensor operator<(const Operand& a, const Operand& b) { return lt(a, b); }
inline Tensor operator<=(const Operand& a, const Operand& b) { return le(a, b); }
inline Tensor operator>(const Operand& a, const Operand& b) { return gt(a, b); }
inline Tensor operator>=(const Operand& a, const Operand& b) { return ge(a, b); }
inline Tensor operator!(const Tensor& x) { return logical_not(x); }
/// The remainder with the sign of the divisor.
inline Tensor operator%(const Operand& a, const Operand& b) { return remainder(a, b); }
/// Bits of integers; of bools, the logical operation.
inline Tensor operator&(const Operand& a, const Operand& b) { return bitwise_and(a, b); }
inline Tensor operator|(const Operand& a, const Operand& b) { return bitwise_or(a, b); }
inline Tensor operator^(const Operand& a, const Operand& b) { return bitwise_xor(a, b); }
inline Tensor operator<<(const Tensor& a, const Operand& b) { return bitwise_left_shift(a, b); }
inline Tensor operator>>(const Tensor& a, const Operand& b) { return bitwise_right_shift(a, b); }
inline Tensor operator~(const Tensor& x) { return bitwise_not(x); }

inline const Tensor& operator+=(const Tensor& a, const Operand& b) { return a.add_(b, 1, b.where()); }
inline const Tensor& operator-=(const Tensor& a, const Operand& b) { return a.sub_(b, 1, b.where()); }
inline const Tensor& operator*=(const Tensor& a, const Operand& b) { return a.mul_(b, b.where()); }
inline const Tensor& operator/=(const Tensor& a, const Operand& b) { return a.div_(b, b.where()); }
inline const Tensor& operator%=(const Tensor& a, const Operand& b) { return a.remainder_(b, b.where()); }
inline const Tensor& operator&=(const Tensor& a, const Operand& b) { return a.bitwise_and_(b, b.where()); }
inline const Tensor& operator|=(const Tensor& a, const Operand& b) { return a.bitwise_or_(b, b.where()); }
inline const Tensor& operator^=(const Tensor& a, const Operand& b) { return a.bitwise_xor_(b, b.where()); }
inline const Tensor& operator<<=(const Tensor& a, const Operand& b) {
  return a.bitwise_left_shift_(b, b.where());
}
inline const Tensor& operator>>=(const Tensor& a, const Operand& b) {
  return a.bitwise_right_shift_(b, b.where());
}

}  // namespace retrograd
#pragma GCC visibility pop
