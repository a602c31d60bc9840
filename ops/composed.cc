// See ops/composed.h.
#include "ops/composed.h"

#include <numbers>

#include "engine/named_call.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/softmax.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {

Tensor positive(Operand input) {
  const Tensor& x = input.defined_tensor("positive");
  if (x.dtype() == kBool)
    fail(Category::dtype_mismatch, "positive", "it is not defined for bool", input.where());
  return x;
}

Tensor sgn(Operand input) {
  const NamedCall call("sgn", input.where());
  return sign(input);
}

Tensor deg2rad(Operand input) {
  const NamedCall call("deg2rad", input.where());
  return mul(input, std::numbers::pi / 180);
}

Tensor rad2deg(Operand input) {
  const NamedCall call("rad2deg", input.where());
  return mul(input, 180 / std::numbers::pi);
}

Tensor rsub(Operand input, Operand other, Scalar alpha) {
  const NamedCall call("rsub", input.where());
  return sub(other, input, alpha);
}

Tensor floor_divide(Operand input, Operand other) {
  const NamedCall call("floor_divide", input.where());
  return div(input, other, "floor");
}

Tensor float_power(Operand input, Operand exponent) {
  const NamedCall call("float_power", input.where());
  Tensor keep[2];
  const auto wide = [&](const Operand& x, Tensor& converted) {
    if (x.is_scalar()) return x;
    converted = to(x, kFloat64);
    return Operand(converted, input.where());
  };
  return pow(wide(input, keep[0]), wide(exponent, keep[1]));
}

Tensor clamp_min(Operand input, Operand min) {
  const NamedCall call("clamp_min", input.where());
  return clamp(input, min);
}

Tensor clamp_max(Operand input, Operand max) {
  const NamedCall call("clamp_max", input.where());
  return clamp(input, {}, max);
}

Tensor softmin(Operand input, int64_t dim, std::optional<ScalarType> dtype) {
  const NamedCall call("softmin", input.where());
  return softmax(neg(input), dim, dtype);
}

Tensor normalize(Operand input, Scalar p, int64_t dim, Scalar eps) {
  const NamedCall call("normalize", input.where());
  const ops::Widened wide(input.defined_tensor("normalize"));
  const Tensor x = wide(input.tensor());
  const Tensor size = clamp(vector_norm(Operand(x, input.where()), p, {dim}, true), eps);
  return wide.back(x / size);
}

}  // namespace retrograd
