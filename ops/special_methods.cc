// Methods of special functions, bits and bounds (engine/method_list.h).
#include <fmt/format.h>

#include "ops/bitwise.h"
#include "ops/composed.h"
#include "ops/define_methods.h"
#include "ops/float_ops.h"
#include "ops/shrinkage.h"
#include "ops/special.h"

namespace retrograd::inline v0 {

RG_SPECIAL_METHODS(RG_METHOD, RG_BOTH)

Tensor Tensor::polygamma(int64_t n, SourceLocation where) const {
  return retrograd::polygamma(n, Operand(*this, where));
}

const Tensor& Tensor::polygamma_(int64_t n, SourceLocation where) const {
  return apply_inplace(
      *this, [&](const Tensor& x) { return retrograd::polygamma(n, Operand(x, where)); }, "polygamma_", where);
}

Tensor Tensor::float_power(const Operand& exponent, SourceLocation where) const {
  const CallScope call(where);
  return retrograd::float_power(Operand(*this, where), exponent);
}

const Tensor& Tensor::float_power_(const Operand& exponent, SourceLocation where) const {
  if (dtype(where) != kFloat64)
    fail(Category::dtype_mismatch, "float_power_",
         fmt::format("{} would be written to, and the result is float64", describe(*this)), where);
  return apply_inplace(
      *this, [&](const Tensor& x) { return retrograd::float_power(Operand(x, where), exponent); },
      "float_power_", where);
}

}  // namespace retrograd
