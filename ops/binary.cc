// pow: see ops/binary.h.
#include "ops/binary.h"

#include "engine/named_call.h"
#include "ops/unary.h"

namespace retrograd::inline v0 {

Tensor pow(Operand input, Operand exponent) {
  if (!exponent.is_scalar()) return ops::Function<ops::Pow>()(input, exponent);
  const NamedCall call("pow", input.where());
  const Operand both[] = {input, exponent};
  ops::Prepared p;
  ops::prepare(p, ops::typing<ops::PowScalar>, both, input.where());
  if (!p.operands[0])
    fail(Category::bad_argument, "pow", "at least one operand must be a tensor", input.where());
  if (!is_floating(p.operands[0]->dtype()) && exponent.scalar() < Scalar(0))
    fail(Category::bad_argument, "pow", "integers to a negative integer power are not integers",
         input.where());
  return ops::emit<ops::PowScalar>({p.operands[0]}, {exponent.scalar()}, input.where());
}

}  // namespace retrograd
