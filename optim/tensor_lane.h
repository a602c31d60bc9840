// TensorLane: the number type V of an update rule's formula that computes with tensors, so that what it computes can be
// differentiated. Included before the rules, it takes the place of ops/math.h there: optim/differentiable.cc.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd::inline v0::tensor_math {

/// A tensor, or a number.
struct TensorLane {
  using Scalar = double;

  TensorLane() = default;
  TensorLane(double value) : number(value) {}
  TensorLane(const Tensor& value) : tensor(value) {}
  Operand operand() const { return tensor.defined() ? Operand(tensor) : Operand(number); }

  Tensor tensor;  // undefined: the number
  double number = 0;
};

/// Of two numbers by `of_numbers`, else by the function of tensors.
#define RG_LANES(name, of_tensors, of_numbers)                           \
  inline TensorLane name(const TensorLane& a, const TensorLane& b) {     \
    if (!a.tensor.defined() && !b.tensor.defined()) return (of_numbers); \
    return retrograd::of_tensors(a.operand(), b.operand());              \
  }
RG_LANES(operator+, add, a.number + b.number)
RG_LANES(operator-, sub, a.number - b.number)
RG_LANES(operator*, mul, a.number* b.number)
RG_LANES(operator/, div, a.number / b.number)
RG_LANES(maximum, maximum, std::max(a.number, b.number))
// Masks are tensors of bool.
RG_LANES(operator<, lt, a.number < b.number)
RG_LANES(operator>, gt, a.number > b.number)
RG_LANES(operator==, eq, a.number == b.number)
#undef RG_LANES

inline TensorLane sqrt(const TensorLane& x) { return retrograd::sqrt(x.operand()); }
inline TensorLane abs(const TensorLane& x) { return retrograd::abs(x.operand()); }
inline TensorLane select(const TensorLane& mask, const TensorLane& a, const TensorLane& b) {
  return retrograd::where(mask.tensor, a.operand(), b.operand());
}
inline TensorLane clamp(const TensorLane& x, const TensorLane& least, const TensorLane& most) {
  return retrograd::clamp(x.operand(), least.operand(), most.operand());
}

inline TensorLane copysign(const TensorLane& x, const TensorLane& y) {
  return abs(x) * TensorLane(retrograd::sign(y.operand()));
}

}  // namespace retrograd::tensor_math

namespace retrograd::inline v0::ops {
namespace math = tensor_math;
}
