// Type rules and derivatives of the systems, inverse and cholesky of ops/linalg.h; those of the determinants
// are in ops/determinants.cc, the public functions in ops/linalg_functions.cc. In formulas ' is the transpose
// and g the gradient of the result.
#include "ops/arithmetic.h"
#include "ops/linalg_parts.h"
#include "ops/rearrange.h"
#include "ops/unary.h"

namespace retrograd::inline v0::ops {

// ---- checks of the family ---------------------------------------------------------------------------------

const Shape& check_matrices(const Call& call, int operand) {
  const TensorImpl& x = *call.operands[static_cast<size_t>(operand)];
  if (x.dtype() != kFloat64 && x.dtype() != kFloat32)
    fail_call(call, Category::dtype_mismatch, "it is defined for float64 and float32");
  if (x.rank() < 2) fail_call(call, Category::bad_dim, "the operand is not a matrix");
  return x.shape();
}

const Shape& check_square(const Call& call, int operand) {
  const Shape& shape = check_matrices(call, operand);
  if (!(shape.back() == shape[shape.rank() - 2]))
    fail_call(call, Category::shape_mismatch, "the matrices are not square");
  return shape;
}

Shape batch_of(const Shape& shape) {
  return Shape(std::span(shape.begin(), static_cast<size_t>(shape.rank() - 2)));
}

void check_fits(const Call& call, int other) {
  const TensorImpl &a = *call.operands[0], &b = *call.operands[static_cast<size_t>(other)];
  if (a.dtype() != b.dtype()) fail_call(call, Category::dtype_mismatch, "operands have different dtypes");
  if (b.rank() != a.rank()) fail_call(call, Category::bad_dim, "operands have different numbers of dims");
  for (int i = 0; i + 1 < a.rank(); ++i)
    if (!(a.shape()[i] == b.shape()[i])) fail_call(call, Category::shape_mismatch, "the operands do not fit");
}

const TensorImpl& check_factors(const Call& call) {
  const TensorImpl &a = *call.operands[0], &lu = *call.operands[1], &p = *call.operands[2];
  check_square(call);
  if (lu.dtype() != a.dtype() || p.dtype() != kInt32)
    fail_call(call, Category::dtype_mismatch, "operands 1 and 2 are not factors");
  if (!(lu.shape() == a.shape()) || !(p.shape() == without_last(a.shape())))
    fail_call(call, Category::shape_mismatch, "the factors do not fit the matrix");
  return a;
}

Tensor eyes(const TensorType& type, SourceLocation where) {
  const Dim n = type.shape.back();
  const Tensor one = eye(n, n, {type.dtype, type.device}, where);
  return expand_to(Operand(one, where), type.shape);
}

// ---- LU ---------------------------------------------------------------------------------------------------

void LuFactor::infer(const Call& call, TensorImpl* const* outputs) {
  const Shape& shape = check_square(call);
  const TensorImpl& a = *call.operands[0];
  set_like(a, shape, *outputs[0]);
  outputs[1]->set_type(kInt32, a.device(), without_last(shape));
}

void LuSolve::infer(const Call& call, TensorImpl* const* outputs) {
  check_factors(call);
  check_fits(call, 3);
  set_like(*call.operands[0], call.operands[3]->shape(), *outputs[0]);
}

// With M X = B, M = A or A': dB solves M' dB = g, and dM = -dB X'.
void LuSolve::vjp(RuleContext& c) {
  Attrs attrs = c.attrs<Attrs>();
  const bool transposed = attrs.transposed;
  attrs.transposed = !transposed;
  const Tensor g = lu_solve(factors_of(c), c.grad(), attrs, c.where());
  if (c.needs(3)) c.give(3, g);
  if (!c.needs(0)) return;
  const Tensor &x = transposed ? g : c.out(), &y = transposed ? c.out() : g;
  c.give(0, neg(product(y, turned(x, c.where()), c.where())));
}

// M dX = dB - dM X.
void LuSolve::jvp(TangentContext& c) {
  Tensor b = c.tangent(3);
  if (c.needs(0)) {
    const bool transposed = c.attrs<Attrs>().transposed;
    const Tensor m = transposed ? turned(c.tangent(0), c.where()) : c.tangent(0);
    b = plus(b, neg(product(m, c.out(), c.where())));
  }
  c.give(0, lu_solve(factors_of(c), b, c.attrs<Attrs>(), c.where()));
}

// ---- inverse ----------------------------------------------------------------------------------------------

void Inverse::infer(const Call& call, TensorImpl* const* outputs) {
  const Shape& shape = check_square(call);
  set_like(*call.operands[0], shape, *outputs[0]);
}

// dY = -Y dA Y.
void Inverse::vjp(RuleContext& c) {
  const Tensor y = turned(c.out(), c.where());
  c.give(0, neg(product(product(y, c.grad(), c.where()), y, c.where())));
}
void Inverse::jvp(TangentContext& c) {
  const Tensor& y = c.out();
  c.give(0, neg(product(product(y, c.tangent(0), c.where()), y, c.where())));
}

// ---- triangular systems and Cholesky ----------------------------------------------------------------------

void SolveTriangular::infer(const Call& call, TensorImpl* const* outputs) {
  check_square(call);
  check_fits(call, 1);
  set_like(*call.operands[0], call.operands[1]->shape(), *outputs[0]);
}

namespace {

// The part of a matrix that the op reads.
Tensor triangle_of(const Tensor& x, SolveTriangular::Attrs attrs, SourceLocation where) {
  const int64_t skip = attrs.unitriangular ? 1 : 0;
  return attrs.upper ? triu(Operand(x, where), skip) : tril(Operand(x, where), -skip);
}

// (lower triangle with half the diagonal): the inverse of X -> X + X' on lower triangular matrices.
Tensor half_tril(const Tensor& x, SourceLocation where) {
  return mul(add(tril(Operand(x, where)), tril(Operand(x, where), -1)), 0.5);
}

}  // namespace

void SolveTriangular::vjp(RuleContext& c) {
  const Attrs attrs = c.attrs<Attrs>();
  const Tensor a = turned(c.in(0).tensor(), c.where());
  const Tensor g = triangular(a, c.grad(), {!attrs.upper, attrs.unitriangular}, c.where());
  if (c.needs(1)) c.give(1, g);
  if (!c.needs(0)) return;
  const Tensor full = product(g, turned(c.out(), c.where()), c.where());
  c.give(0, neg(triangle_of(full, attrs, c.where())));
}

void SolveTriangular::jvp(TangentContext& c) {
  const Attrs attrs = c.attrs<Attrs>();
  Tensor b = c.tangent(1);
  if (c.needs(0)) b = plus(b, neg(product(triangle_of(c.tangent(0), attrs, c.where()), c.out(), c.where())));
  c.give(0, triangular(c.in(0).tensor(), b, attrs, c.where()));
}

void Cholesky::infer(const Call& call, TensorImpl* const* outputs) {
  const Shape& shape = check_square(call);
  set_like(*call.operands[0], shape, *outputs[0]);
}

// With L lower and S = L' g: dA = inverse(L)' (the symmetric matrix with half of tril(S) in both triangles)
// inverse(L). Both solves are with L' on the left: the matrix between is symmetric.
void Cholesky::vjp(RuleContext& c) {
  const SourceLocation where = c.where();
  const bool upper = c.attrs<Attrs>().upper;
  const Tensor l_turned = upper ? c.out() : turned(c.out(), where);
  const Tensor g = upper ? turned(c.grad(), where) : c.grad();
  const Tensor half = half_tril(product(l_turned, g, where), where);
  const Tensor middle = mul(add(half, turned(half, where)), 0.5);
  const Tensor right = turned(triangular(l_turned, middle, {true, false}, where), where);
  c.give(0, triangular(l_turned, right, {true, false}, where));
}

// dL = L half_tril(inverse(L) dA inverse(L)'), for dA in terms of L: with `upper` it is the other triangle that is
// read.
void Cholesky::jvp(TangentContext& c) {
  const SourceLocation where = c.where();
  const bool upper = c.attrs<Attrs>().upper;
  const Tensor l = upper ? turned(c.out(), where) : c.out();
  const Tensor da = upper ? turned(c.tangent(0), where) : c.tangent(0);
  const Tensor left = triangular(l, da, {false, false}, where);
  const Tensor middle = turned(triangular(l, turned(left, where), {false, false}, where), where);
  const Tensor dl = product(l, half_tril(middle, where), where);
  c.give(0, upper ? turned(dl, where) : dl);
}

}  // namespace retrograd::ops
