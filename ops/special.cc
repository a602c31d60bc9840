// Functions of ops/special.h that are more than a call of an op, and the type rules with attributes.
#include "ops/special.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/unary.h"

namespace retrograd::inline v0 {

void ops::infer_derivative(const Call& call, TensorImpl* const* outputs) {
  if (const int64_t m = call.attrs_as<DerivativeAttr>().derivative; m < 0 || m > kMostDerivatives)
    fail_call(call, Category::bad_argument,
              fmt::format("its derivatives go up to order {}", kMostDerivatives));
  infer_elementwise(call, outputs);
}

void ops::BesselI::infer(const Call& call, TensorImpl* const* outputs) {
  if (const int64_t n = call.attrs_as<Attrs>().order; n < 0 || n > kMostOrder)
    fail_call(call, Category::bad_argument, fmt::format("its order is at most {}", kMostOrder));
  infer_elementwise(call, outputs);
}

Tensor logit(Operand input, std::optional<double> eps) {
  return ops::Function<ops::Logit>()(input, Scalar(eps.value_or(-1.0)));
}

Tensor polygamma(int64_t n, Operand input) {
  const NamedCall call("polygamma", input.where());
  if (n == 0) return digamma(input);
  if (n < 0) fail(Category::bad_argument, "polygamma", fmt::format("n is {}, below 0", n), input.where());
  return ops::Function<ops::Polygamma>()(input, n);
}

namespace special {

Tensor erfcx(Operand input) { return ops::Function<ops::Erfcx>()(input); }
Tensor i0e(Operand input) { return ops::Function<ops::I0e>()(input); }
Tensor i1e(Operand input) { return ops::Function<ops::I1e>()(input); }

Tensor i0(Operand input) {
  const NamedCall call("special_i0", input.where());
  return ops::Function<ops::BesselI>()(input, 0);
}
Tensor i1(Operand input) {
  const NamedCall call("special_i1", input.where());
  return ops::Function<ops::BesselI>()(input, 1);
}

}  // namespace special
}  // namespace retrograd
