// See engine/rule.h.
#include "engine/rule.h"

#include "ir/bookkeeping.h"
#include "ops/creation.h"

namespace retrograd {

Tensor RuleContext::grad_or_zeros(int i) const {
  return grads_[i].defined() ? grads_[i] : zeros_of(out_type(i), record_.where);
}

const Tensor& RuleContext::value(int slot) {
  RG_ASSERT(slot < record_.slots);
  Tensor& value = values_[slot];
  if (!value.defined()) {
    UnpackAttrs attrs{&record_, slot};
    emitter_.emit({&ops::unpack, {}, &attrs, record_.where, 1}, &value);
  }
  return value;
}

void RuleContext::unpack_the_rest() {
  for (int i = 0; i < record_.slots; ++i)
    if (record_.slot(i).is_hooked()) value(i);
}

namespace {

class ScalarFinder final : public AttrVisitor {
 public:
  Scalar found;
  void field(std::string_view, bool&) override {}
  void field(std::string_view, int64_t&) override {}
  void field(std::string_view, Dim&) override {}
  void field(std::string_view name, Scalar& value) override {
    if (name == "scalar") found = value;
  }
  void field(std::string_view, Shape&) override {}
  void field(std::string_view, IntList&) override {}
  void field(std::string_view, ScalarType&) override {}
};

Scalar scalar_operand(const OpInfo& op, void* attrs) {
  ScalarFinder finder;
  op.visit_attrs(attrs, finder);
  return finder.found;
}

}  // namespace

Scalar RuleContext::number() const { return scalar_operand(*record_.op, const_cast<void*>(attrs_ptr())); }

Tensor TangentContext::tangent_or_zeros(int i) const {
  return tangents_[i].defined() ? tangents_[i] : zeros_of(type(i), call_.where);
}

Operand TangentContext::in(int i) {
  if (!call_.operands[i]) return Operand(scalar_operand(*call_.op, call_.attrs), call_.where);
  held_[i] = Tensor(RefPtr<TensorImpl>(call_.operands[i]));
  return Operand(held_[i], call_.where);
}

}  // namespace retrograd
