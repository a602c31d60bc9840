// Functions of ops/unary.h that are more than a call of an op: nan_to_num, the type rule of polygamma.
#include "ops/unary.h"

#include "engine/named_call.h"

#include <limits>

namespace retrograd::inline v0 {

void ops::Polygamma::infer(const Call& call, TensorImpl* const* outputs) {
  if (const int64_t n = call.attrs_as<Attrs>().n; n < 1 || n > kMost)
    fail_call(call, Category::bad_argument,
              "n is below 1 or above 170, beyond which n! is not representable as a double");
  infer_elementwise(call, outputs);
}

namespace {

// The largest finite number of a dtype; integers have no infinities to replace.
double largest(ScalarType dtype) {
  switch (dtype) {
    case kFloat64: return std::numeric_limits<double>::max();
    case kFloat32: return static_cast<double>(std::numeric_limits<float>::max());
    case kFloat16: return 65504;
    case kBFloat16: return 0x1.fep127;
    default: return 0;
  }
}

}  // namespace

Tensor nan_to_num(Operand x, Scalar nan, std::optional<Scalar> posinf, std::optional<Scalar> neginf) {
  const NamedCall call("nan_to_num", x.where());
  const double limit = largest(x.tensor().dtype());
  return ops::Function<ops::NanToNum>()(x, nan, posinf.value_or(limit), neginf.value_or(-limit));
}

}  // namespace retrograd
