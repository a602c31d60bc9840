// Methods that write without a result of their own in between, where nothing is recorded: arithmetic, copy_ and fill_.
#include "ops/arithmetic.h"
#include "ops/copy.h"
#include "ops/define_methods.h"
#include "ops/full.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {

namespace {

// self = op(self, other) directly, when nothing is recorded. A null `other` means the number.
template <class Op>
bool directly(std::string_view name, const Tensor& self, TensorImpl* other, Scalar number,
              SourceLocation where) {
  TensorImpl* operands[] = {&self.impl(name, where), other};
  typename Op::Attrs attrs{number};
  return is_floating(self.dtype()) && !is_float8(self.dtype()) &&
         write_directly(ops::info<Op>, self, operands, &attrs, where);
}

// self = function(self): by `Op` of self and `other` alone where it may be and can be.
template <class Op, class F>
const Tensor& write(const Tensor& self, const Operand& other, bool may_be_direct, std::string_view name,
                    SourceLocation where, const F& function) {
  TensorImpl* const second = other.is_scalar() ? nullptr : &other.tensor().impl(name, where);
  if (may_be_direct && directly<Op>(name, self, second, other.scalar(), where)) return self;
  return apply_inplace(
      self, [&](const Tensor& x) { return function(Operand(x, where)); }, name, where);
}

bool is_one(Scalar alpha) { return alpha.number() == Number::of(int64_t{1}); }

}  // namespace

#define RG_WITHOUT_IN_PLACE(NAME, PARAMETERS, ...) RG_METHOD(Tensor, NAME, PARAMETERS, __VA_ARGS__)
RG_ARITHMETIC_METHODS(RG_METHOD, RG_WITHOUT_IN_PLACE)

const Tensor& Tensor::add_(const Operand& other, Scalar alpha, SourceLocation where) const {
  return write<ops::Add>(*this, other, is_one(alpha), "add_", where,
                         [&](const Operand& x) { return retrograd::add(x, other, alpha); });
}

const Tensor& Tensor::sub_(const Operand& other, Scalar alpha, SourceLocation where) const {
  return write<ops::Sub>(*this, other, is_one(alpha), "sub_", where,
                         [&](const Operand& x) { return retrograd::sub(x, other, alpha); });
}

const Tensor& Tensor::mul_(const Operand& other, SourceLocation where) const {
  return write<ops::Mul>(*this, other, true, "mul_", where,
                         [&](const Operand& x) { return retrograd::mul(x, other); });
}

const Tensor& Tensor::div_(const Operand& other, SourceLocation where) const {
  return write<ops::Div>(*this, other, true, "div_", where,
                         [&](const Operand& x) { return retrograd::div(x, other); });
}

const Tensor& Tensor::copy_(const Tensor& source, SourceLocation where) const {
  impl("copy_", where);
  TensorImpl* operand = &source.impl("copy_", where);
  if (write_directly(ops::info<ops::Clone>, *this, {&operand, 1}, nullptr, where)) return *this;
  return apply_inplace(
      *this, [&](const Tensor& x) { return copy(Operand(x, where), source); }, "copy_", where);
}

const Tensor& Tensor::operator=(const Operand& value) && {
  return value.is_scalar() ? fill_(value, value.where()) : copy_(value.tensor(), value.where());
}

const Tensor& Tensor::fill_(const Operand& value, SourceLocation where) const {
  const TensorImpl& self = impl("fill_", where);
  ops::Full::Attrs attrs{self.shape(), value.scalar(), self.dtype(), self.device()};
  if (value.is_scalar() && self.is_contiguous() &&
      write_directly(ops::info<ops::Full>, *this, {}, &attrs, where))
    return *this;
  return apply_inplace(
      *this, [&](const Tensor& x) { return fill(Operand(x, where), value); }, "fill_", where);
}

const Tensor& Tensor::zero_(SourceLocation where) const {
  if (impl("zero_", where).is_contiguous() && !GradMode::is_enabled()) return fill_(0, where);
  return apply_inplace(
      *this, [&](const Tensor& x) { return zero(Operand(x, where)); }, "zero_", where);
}

}  // namespace retrograd
