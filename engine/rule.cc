// See engine/rule.h.
#include "engine/rule.h"

#include "engine/basic_ops.h"
#include "engine/bookkeeping.h"
#include "engine/each_field.h"

namespace retrograd::inline v0 {

Tensor RuleContext::grad_or_zeros(int i) const {
  return grads_[i].defined() ? grads_[i] : basic::zeros(out_type(i), record_.where());
}

bool RuleContext::is_repeated(int i) const {
  if (record_.alike && has_operand(i)) return false;
  const TypeMeta &x = record_.type_meta(i), &result = record_.type_meta(record_.operands);
  if (x.rank != result.rank) return true;
  if (x.first_dim == result.first_dim) return false;  // one shape, kept once
  const Dim *from = record_.dims() + x.first_dim, *to = record_.dims() + result.first_dim;
  for (int k = 0; k < x.rank; ++k)
    if (from[k].raw() == 1 && to[k].raw() != 1) return true;
  return false;
}

const Tensor& RuleContext::value(int slot) {
  RG_ASSERT(slot >= 0);  // it was saved
  Tensor& value = values_[slot];
  if (!value.defined()) {
    UnpackAttrs attrs{{}, &record_, slot};
    emitter_.emit({&ops::unpack, {}, &attrs, record_.where(), 1}, &value);
  }
  return value;
}

void RuleContext::unpack_packed() {
  for (int i = 0; i < record_.slots; ++i)
    if (record_.slot(i).packed()) value(i);
}

Scalar RuleContext::number() const { return ir::scalar_operand(*record_.op, const_cast<void*>(attrs_ptr())); }

Tensor TangentContext::tangent_or_zeros(int i) const {
  return tangents_[i].defined() ? tangents_[i] : basic::zeros(type(i), call_.where);
}

Operand TangentContext::in(int i) {
  if (!call_.operands[i]) return Operand(ir::scalar_operand(*call_.op, call_.attrs), call_.where);
  held_[i] = Tensor(RefPtr<TensorImpl>(call_.operands[i]));
  return Operand(held_[i], call_.where);
}

}  // namespace retrograd
