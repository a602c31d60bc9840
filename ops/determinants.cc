// Type rules and derivatives of the determinants of ops/linalg.h. In formulas ' is the transpose and <X, Y>
// the sum of the elements of X * Y. The public functions are in ops/linalg_functions.cc.
#include "ops/arithmetic.h"
#include "ops/linalg_parts.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "ops/views.h"

namespace retrograd::inline v0::ops {
namespace {

// A number per matrix as (..., 1, 1).
Tensor per_matrix(const Tensor& x, SourceLocation where) {
  return unsqueeze(Operand(unsqueeze(Operand(x, where), -1), where), -1);
}

// <x, y> of each matrix.
Tensor inner(const Tensor& x, const Tensor& y, SourceLocation where) {
  return sum(Operand(mul(Operand(x, where), Operand(y, where)), where), {-2, -1});
}

// The trace of each matrix.
Tensor traces(const Tensor& x, SourceLocation where) {
  return sum(Operand(diagonal(Operand(x, where), 0, -2, -1), where), {-1});
}

Tensor inverse_turned(const Factors& f, const TensorType& type, SourceLocation where) {
  return lu_solve(f, eyes(type, where), {true, false}, where);
}

Tensor cofactor(const Factors& f, SourceLocation where) {
  return emit<Cofactor>({f.a.get(), f.lu.get(), f.permutation.get()}, {}, where);
}

Tensor cofactor_derivative(const Tensor& a, const Tensor& e, SourceLocation where) {
  return emit<CofactorDerivative>({a.get(), e.get()}, {}, where);
}

}  // namespace

void LuDet::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& a = check_factors(call);
  set_like(a, batch_of(a.shape()), *outputs[0]);
}

void LuDet::vjp(RuleContext& c) {
  c.give(0, mul(per_matrix(c.grad(), c.where()), cofactor(factors_of(c), c.where())));
}

void LuDet::jvp(TangentContext& c) {
  c.give(0, inner(cofactor(factors_of(c), c.where()), c.tangent(0), c.where()));
}

void LuSlogdet::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& a = check_factors(call);
  for (int i : {0, 1}) set_like(a, batch_of(a.shape()), *outputs[i]);
}

// d log |det A| = <inverse(A)', dA>; the sign is constant.
void LuSlogdet::vjp(RuleContext& c) {
  if (!c.grad(1).defined()) return;
  c.give(0, mul(per_matrix(c.grad(1), c.where()), inverse_turned(factors_of(c), c.type(0), c.where())));
}

void LuSlogdet::jvp(TangentContext& c) {
  c.give(1, inner(inverse_turned(factors_of(c), c.type(0), c.where()), c.tangent(0), c.where()));
}

void Cofactor::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& a = check_factors(call);
  set_like(a, a.shape(), *outputs[0]);
}

// The second derivative of det is symmetric, hence its own transpose.
void Cofactor::vjp(RuleContext& c) { c.give(0, cofactor_derivative(c.in(0).tensor(), c.grad(), c.where())); }
void Cofactor::jvp(TangentContext& c) {
  c.give(0, cofactor_derivative(c.in(0).tensor(), c.tangent(0), c.where()));
}

void CofactorDerivative::infer(const Call& call, TensorImpl* const* outputs) {
  const Shape& shape = check_square(call);
  check_fits(call, 1);
  if (!(call.operands[1]->shape() == shape))
    fail_call(call, Category::shape_mismatch, "the direction does not fit the matrix");
  set_like(*call.operands[0], shape, *outputs[0]);
}

namespace {

// The third derivative of det at A in the directions E and G, as the matrix whose inner product <., F> it is. With Y
// the inverse of A, e = Y E, g = Y G and traces t, it is
//   det A * ((t(e) t(g) - t(e g)) I - t(g) e - t(e) g + e g + g e)' Y'.
Tensor third_derivative(const Tensor& a, const Tensor& E, const Tensor& G, SourceLocation where) {
  const Tensor y = inverse(Operand(a, where)), e = product(y, E, where), g = product(y, G, where);
  const Tensor te = traces(e, where), tg = traces(g, where);
  const Tensor eg = product(e, g, where), ge = product(g, e, where);
  const Tensor factor = per_matrix(sub(mul(te, tg), traces(eg, where)), where);
  const Tensor on_diagonal = mul(factor, eyes(a.impl().type(), where));
  const Tensor linear = add(mul(per_matrix(tg, where), e), mul(per_matrix(te, where), g));
  const Tensor all = add(sub(on_diagonal, linear), add(eg, ge));
  const Tensor turned_back = turned(product(all, y, where), where);
  return mul(per_matrix(det(Operand(a, where)), where), turned_back);
}

}  // namespace

void CofactorDerivative::vjp(RuleContext& c) {
  const Tensor a = c.in(0).tensor();
  if (c.needs(0)) c.give(0, third_derivative(a, c.in(1).tensor(), c.grad(), c.where()));
  if (c.needs(1)) c.give(1, cofactor_derivative(a, c.grad(), c.where()));
}

void CofactorDerivative::jvp(TangentContext& c) {
  const Tensor a = c.in(0).tensor();
  Tensor sum;
  if (c.needs(0)) sum = third_derivative(a, c.in(1).tensor(), c.tangent(0), c.where());
  if (c.needs(1)) sum = plus(sum, cofactor_derivative(a, c.tangent(1), c.where()));
  c.give(0, sum);
}

}  // namespace retrograd::ops
