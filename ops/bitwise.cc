// Type rule and functions of ops/bitwise.h.
#include "ops/bitwise.h"

#include "engine/named_call.h"
#include "ops/unary.h"

namespace retrograd::inline v0 {

void ops::infer_integers(const Call& call, TensorImpl* const* outputs, bool booleans) {
  infer_elementwise(call, outputs);
  if (!is_integral(outputs[0]->dtype(), booleans))
    fail_call(call, Category::dtype_mismatch, booleans ? "integers or bools wanted" : "integers wanted");
}

// -1 has all bits.
Tensor bitwise_not(Operand input) {
  const NamedCall call("bitwise_not", input.where());
  return input.defined_tensor("bitwise_not").dtype() == kBool ? logical_not(input) : bitwise_xor(input, -1);
}

}  // namespace retrograd
