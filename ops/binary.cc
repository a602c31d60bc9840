// Derivatives of ops/binary.h (PyTorch: derivatives.yaml), and pow.
#include "ops/binary.h"

#include <limits>

#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd {
namespace ops {

// By a: b a^(b-1), and 0 where b = 0 (not 0 * inf). By b: a^b log a, and 0 where a = 0 and b >= 0.
Tensor Pow::chain(const Point& p, int i, const Tensor& t) {
  const Operand a = p.in(0), b = p.in(1);
  if (i == 0) return where(eq(b, 0), 0, t * (b * pow(a, b - 1)));
  const Tensor base = a.is_scalar() ? scalar_tensor(a.scalar(), p.type(1).dtype, p.where()) : a.tensor();
  return t * where(logical_and(eq(base, 0), ge(b, 0)), 0, p.out() * log(base));
}

Tensor Atan2::chain(const Point& p, int i, const Tensor& t) {
  const Operand a = p.in(0), b = p.in(1);
  const Tensor length2 = square(a) + square(b);
  // No direction at 0: the gradient is 0, as in PyTorch. A where() around the reciprocal would have NaN as its
  // own derivative.
  const Tensor inverse = reciprocal(where(eq(length2, 0), std::numeric_limits<double>::infinity(), length2));
  return i == 0 ? t * b * inverse : t * -a * inverse;
}

Tensor Hypot::chain(const Point& p, int i, const Tensor& t) { return t * (p.in(i) / p.out()); }

Tensor Logaddexp::chain(const Point& p, int i, const Tensor& t) { return t * sigmoid(p.in(i)-p.in(1 - i)); }

Tensor Maximum::chain(const Point& p, int i, const Tensor& t) {
  return emit<ExtremumBackward>({t.get(), p.in(i).tensor().get(), p.in(1 - i).tensor().get()}, {}, p.where());
}

Tensor Minimum::chain(const Point& p, int i, const Tensor& t) {
  return emit<ExtremumBackward>({t.get(), p.in(1 - i).tensor().get(), p.in(i).tensor().get()}, {}, p.where());
}

Tensor ExtremumBackward::chain(const Point& p, int i, const Tensor& t) {
  if (i > 0) return zero_chain(p, i);
  return emit<ExtremumBackward>({t.get(), p.in(1).tensor().get(), p.in(2).tensor().get()}, {}, p.where());
}

Tensor Fmod::chain(const Point& p, int i, const Tensor& t) {
  return i == 0 ? t : -t * div(p.in(0), p.in(1), "trunc");
}

Tensor Remainder::chain(const Point& p, int i, const Tensor& t) {
  return i == 0 ? t : -t * div(p.in(0), p.in(1), "floor");
}

}  // namespace ops

Tensor pow(Operand input, Operand exponent) {
  if (!exponent.is_scalar()) return ops::Function<ops::Pow>()(input, exponent);
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
