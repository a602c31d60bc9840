// See ops/copy.h.
#include "ops/copy.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/creation.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace ops {

void Copy::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &old = *call.operands[0], &source = *call.operands[1];
  if (!(old.shape() == source.shape()))
    fail_call(call, Category::shape_mismatch, "old value and source have different shapes");
  if (old.dtype() != source.dtype())
    fail_call(call, Category::dtype_mismatch, "old value and source have different dtypes");
  outputs[0]->set_type(old.dtype(), old.device(), old.shape());
}

void Copy::vjp(RuleContext& c) {
  if (c.needs(0)) c.give(0, zeros_of(c.type(0), c.where()));
  if (c.needs(1)) c.give(1, c.grad());
}

void Copy::jvp(TangentContext& c) { c.give(0, c.tangent_or_zeros(1)); }

}  // namespace ops

Tensor copy(Operand self, const Tensor& source) {
  const NamedCall call("copy", self.where());
  const Tensor& old = self.tensor();
  const Tensor cast = to(Operand(source, self.where()), old.dtype());
  const Tensor here = to(Operand(cast, self.where()), old.device());
  const Tensor wide = expand_to(Operand(here, self.where()), old.impl().shape());
  return ops::emit<ops::Copy>({old.get(), wide.get()}, {}, self.where());
}

Tensor fill(Operand self, Operand value) {
  const NamedCall call("fill", self.where());
  const Tensor& old = self.tensor();
  if (value.is_scalar())
    return copy(self, scalar_tensor(value.scalar(), {old.dtype(), old.device()}, self.where()));
  if (value.tensor().dim() != 0)
    fail(Category::bad_dim, "fill", fmt::format("the value is {}, not a number", describe(value.tensor())),
         self.where());
  return copy(self, value.tensor());
}

Tensor zero(Operand self) {
  const NamedCall call("zero", self.where());
  return fill(self, Operand(Scalar(0), self.where()));
}

}  // namespace retrograd
