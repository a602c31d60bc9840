// Small helpers for derivative kinds: products and sums where an operand may be undefined or a number.
#pragma once

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

/// g * factor; g itself when the factor is the number 1.
Tensor multiply(const Tensor& g, Operand factor);
/// a + b, or b where a is undefined: for sums that begin empty.
Tensor plus(const Tensor& a, const Tensor& b);

}  // namespace retrograd::ops
#pragma GCC visibility pop
