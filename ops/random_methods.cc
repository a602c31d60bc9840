// The random methods of Tensor (engine/tensor.h): draws written in place. When nothing is recorded, the draw fills the
// tensor's memory; else it is a new tensor, copied in place of the old value, which then gets a gradient of zeros
// (ops/copy.h).
#include <fmt/format.h>

#include "engine/inplace.h"
#include "ops/copy.h"
#include "ops/random_ops.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace {

template <class Op>
const Tensor& draw_in_place(const Tensor& self, typename Op::Attrs attrs, std::string_view name,
                            SourceLocation where) {
  attrs.device = self.device();
  if (write_directly(ops::info<Op>, self, {}, &attrs, where)) return self;
  return apply_inplace(
      self, [&](const Tensor& x) { return copy(Operand(x, where), ops::emit<Op>({}, attrs, where)); }, name,
      where);
}

template <class Op>
const Tensor& draw_in_place(const Tensor& self, double a, double b, std::string_view name,
                            SourceLocation where) {
  return draw_in_place<Op>(self, {self.impl().shape(), a, b, self.dtype(), ops::reserve_draw(name, where)},
                           name, where);
}

void check_floating(const Tensor& x, std::string_view op, SourceLocation where) {
  if (!ops::is_drawn_floating(x.impl(op, where).dtype()))
    fail(Category::dtype_mismatch, op, fmt::format("it does not draw {}", name(x.dtype())), where);
}

const Tensor& random_in_place(const Tensor& x, int64_t from, int64_t to, SourceLocation where) {
  if (is_float8(x.impl("random_", where).dtype()))
    fail(Category::dtype_mismatch, "random_", fmt::format("it does not draw {}", name(x.dtype())), where);
  ops::check_integers("random_", from, to, x.dtype(), where);
  return draw_in_place<ops::RandInt>(
      x, {x.impl().shape(), from, to, x.dtype(), ops::reserve_draw("random_", where)}, "random_", where);
}

}  // namespace

const Tensor& Tensor::uniform_(double from, double to, SourceLocation where) const {
  check_floating(*this, "uniform_", where);
  ops::check_range("uniform_", from, to, dtype(), where);
  return draw_in_place<ops::Uniform>(*this, from, to, "uniform_", where);
}

const Tensor& Tensor::normal_(double mean, double std, SourceLocation where) const {
  check_floating(*this, "normal_", where);
  ops::check_deviation("normal_", std, where);
  return draw_in_place<ops::Normal>(*this, mean, std, "normal_", where);
}

const Tensor& Tensor::exponential_(double lambd, SourceLocation where) const {
  check_floating(*this, "exponential_", where);
  ops::check_rate("exponential_", lambd, where);
  return draw_in_place<ops::Exponential>(
      *this, {impl().shape(), lambd, dtype(), ops::reserve_draw("exponential_", where)}, "exponential_",
      where);
}

const Tensor& Tensor::bernoulli_(double p, SourceLocation where) const {
  impl("bernoulli_", where);
  ops::check_probability("bernoulli_", p, where);
  return draw_in_place<ops::BernoulliNumber>(
      *this, {impl().shape(), p, dtype(), ops::reserve_draw("bernoulli_", where)}, "bernoulli_", where);
}

// p is expanded before the draw: each element has a random number of its own.
const Tensor& Tensor::bernoulli_(const Tensor& p, SourceLocation where) const {
  return apply_inplace(
      *this,
      [&](const Tensor& x) {
        const Tensor wide = expand_to(Operand(p, where), x.impl().shape());
        return copy(Operand(x, where), retrograd::bernoulli(Operand(wide, where)));
      },
      "bernoulli_", where);
}

const Tensor& Tensor::random_(SourceLocation where) const {
  return random_in_place(*this, 0, ops::end_of_integers(impl("random_", where).dtype()), where);
}
const Tensor& Tensor::random_(int64_t to, SourceLocation where) const {
  return random_in_place(*this, 0, to, where);
}
const Tensor& Tensor::random_(int64_t from, int64_t to, SourceLocation where) const {
  return random_in_place(*this, from, to, where);
}

}  // namespace retrograd
