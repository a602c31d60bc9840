// The op methods of Tensor (engine/tensor.h): thin calls of the functions in ops/, and the in-place ones with their
// fast paths.
#include "engine/inplace.h"
#include "ops/arithmetic.h"
#include "ops/copy.h"
#include "ops/full.h"
#include "ops/reduce.h"
#include "ops/views.h"

namespace retrograd::inline v0 {

Tensor Tensor::to(ScalarType dtype, SourceLocation where) const {
  return retrograd::to(Operand(*this, where), dtype);
}
Tensor Tensor::to(Device device, SourceLocation where) const {
  return retrograd::to(Operand(*this, where), device);
}
Tensor Tensor::detach(SourceLocation where) const { return retrograd::detach(Operand(*this, where)); }
Tensor Tensor::clone(SourceLocation where) const { return retrograd::clone(Operand(*this, where)); }
Tensor Tensor::contiguous(SourceLocation where) const { return retrograd::contiguous(Operand(*this, where)); }
Tensor Tensor::sum(SourceLocation where) const { return retrograd::sum(Operand(*this, where)); }
Tensor Tensor::mean(SourceLocation where) const { return retrograd::mean(Operand(*this, where)); }
Tensor Tensor::t(SourceLocation where) const { return retrograd::t(Operand(*this, where)); }

Tensor Tensor::transpose(int64_t dim0, int64_t dim1, SourceLocation where) const {
  return retrograd::transpose(Operand(*this, where), dim0, dim1);
}

Tensor Tensor::view(const Shape& size, SourceLocation where) const {
  return retrograd::view(Operand(*this, where), size);
}
Tensor Tensor::reshape(const Shape& shape, SourceLocation where) const {
  return retrograd::reshape(Operand(*this, where), shape);
}

Tensor Tensor::select(int64_t dim, int64_t index, SourceLocation where) const {
  return retrograd::select(Operand(*this, where), dim, index);
}

Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length, SourceLocation where) const {
  return retrograd::narrow(Operand(*this, where), dim, start, length);
}

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

}  // namespace

const Tensor& Tensor::add_(const Tensor& other, Scalar alpha, SourceLocation where) const {
  TensorImpl& second = other.impl("add_", where);
  if (alpha.number() == Number::of(int64_t{1}) && directly<ops::Add>("add_", *this, &second, 0, where))
    return *this;
  return apply_inplace(
      *this, [&](const Tensor& x) { return add(Operand(x, where), Operand(other, where), alpha); }, "add_",
      where);
}

const Tensor& Tensor::mul_(const Tensor& other, SourceLocation where) const {
  if (directly<ops::Mul>("mul_", *this, &other.impl("mul_", where), 0, where)) return *this;
  return apply_inplace(
      *this, [&](const Tensor& x) { return mul(Operand(x, where), Operand(other, where)); }, "mul_", where);
}

const Tensor& Tensor::mul_(Scalar other, SourceLocation where) const {
  if (directly<ops::Mul>("mul_", *this, nullptr, other, where)) return *this;
  return apply_inplace(
      *this, [&](const Tensor& x) { return mul(Operand(x, where), Operand(other, where)); }, "mul_", where);
}

const Tensor& Tensor::copy_(const Tensor& source, SourceLocation where) const {
  impl("copy_", where);
  TensorImpl* operand = &source.impl("copy_", where);
  if (write_directly(ops::info<ops::Clone>, *this, {&operand, 1}, nullptr, where)) return *this;
  return apply_inplace(
      *this, [&](const Tensor& x) { return copy(Operand(x, where), source); }, "copy_", where);
}

const Tensor& Tensor::fill_(Scalar value, SourceLocation where) const {
  const TensorImpl& self = impl("fill_", where);
  ops::Full::Attrs attrs{self.shape(), value, self.dtype(), self.device()};
  if (self.is_contiguous() && write_directly(ops::info<ops::Full>, *this, {}, &attrs, where)) return *this;
  return apply_inplace(
      *this, [&](const Tensor& x) { return fill(Operand(x, where), Operand(value, where)); }, "fill_", where);
}

const Tensor& Tensor::zero_(SourceLocation where) const {
  if (impl("zero_", where).is_contiguous() && !GradMode::is_enabled()) return fill_(0, where);
  return apply_inplace(
      *this, [&](const Tensor& x) { return zero(Operand(x, where)); }, "zero_", where);
}

}  // namespace retrograd
