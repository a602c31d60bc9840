// Public functions of libtorch that are other functions with other arguments, or made of a few.
#pragma once

#include <optional>

#include "ops/arithmetic.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// input itself. Error(dtype_mismatch) for bool.
Tensor positive(Operand input);
/// As sign.
Tensor sgn(Operand input);
/// input * pi / 180, and input * 180 / pi. Integers give float32.
Tensor deg2rad(Operand input);
Tensor rad2deg(Operand input);
/// other - alpha * input: see sub.
Tensor rsub(Operand input, Operand other, Scalar alpha = 1);
/// input / other rounded down: div with rounding_mode "floor".
Tensor floor_divide(Operand input, Operand other);
/// input^exponent, computed in float64.
Tensor float_power(Operand input, Operand exponent);
/// clamp with one bound.
Tensor clamp_min(Operand input, Operand min);
Tensor clamp_max(Operand input, Operand max);
/// softmax(-input, dim, dtype).
Tensor softmin(Operand input, int64_t dim, std::optional<ScalarType> dtype = {});
/// input / max(vector_norm(input, p, dim), eps), rounded once for 16 bits. A row of zeros has the gradient g / eps.
Tensor normalize(Operand input, Scalar p = 2.0, int64_t dim = 1, Scalar eps = 1e-12);

}  // namespace retrograd
#pragma GCC visibility pop
