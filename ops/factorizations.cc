// Type rules, derivatives and public functions of ops/factorizations.h. In formulas ' is the transpose.
#include "ops/factorizations.h"

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/index_ops.h"
#include "ops/join.h"
#include "ops/linalg_parts.h"
#include "ops/rearrange.h"
#include "ops/unary.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

Tensor upper_part(const Tensor& x, SourceLocation where) { return triu(Operand(x, where)); }
Tensor lower_part(const Tensor& x, SourceLocation where) { return tril(Operand(x, where), -1); }

// The upper triangle is read as such, `unit_lower` the one below the diagonal, with ones on it.
constexpr SolveTriangular::Attrs kUpper = {true, false}, kLower = {false, false}, kUnitLower = {false, true},
                                 kUnitUpper = {true, true};

// x / U, of X U = x, and x / U'.
Tensor over_upper(const Tensor& x, const Tensor& u, SourceLocation where) {
  return turned(triangular(turned(u, where), turned(x, where), kLower, where), where);
}
Tensor over_upper_turned(const Tensor& x, const Tensor& u, SourceLocation where) {
  return turned(triangular(u, turned(x, where), kUpper, where), where);
}

}  // namespace

// ---- QR ---------------------------------------------------------------------------------------------------

void Qr::infer(const Call& call, TensorImpl* const* outputs) {
  const Shape& shape = check_matrices(call);
  const auto [m, n, least] = matrix_sizes(shape);
  if (m < n) fail_call(call, Category::shape_mismatch, "the matrices have more columns than rows");
  const Dim k = call.attrs_as<Attrs>().complete ? m : n;
  const Shape batch = batch_of(shape);
  set_like(*call.operands[0], with_sizes(batch, {m, k}), *outputs[0]);
  set_like(*call.operands[0], with_sizes(batch, {k, n}), *outputs[1]);
}

namespace {

template <class Context>
void check_determined(const Context& c) {
  const auto [m, n, least] = matrix_sizes(c.type(0).shape);
  if (c.template attrs<Qr::Attrs>().complete && !(m == n))
    fail(Category::unsupported, "qr",
         "the last columns of a complete Q are not determined, so they have no derivative: use the mode "
         "\"reduced\"",
         c.where());
}

}  // namespace

// With M = triu(gR R' - Q' gQ): dA = (gQ + Q (M + M' with half the diagonal)) / R'.
void Qr::vjp(RuleContext& c) {
  check_determined(c);
  const SourceLocation where = c.where();
  const Tensor &q = c.out(0), &r = c.out(1), &gq = c.grad(0), &gr = c.grad(1);
  Tensor m;
  if (gr.defined()) m = product(gr, turned(r, where), where);
  if (gq.defined()) m = plus(m, neg(product(turned(q, where), gq, where)));
  const Tensor upper = upper_part(m, where);
  const Tensor both = add(upper, turned(triu(Operand(upper, where), 1), where));
  c.give(0, over_upper_turned(plus(gq, product(q, both, where)), r, where));
}

// With X = Q' dA / R: dR = (triu(X + X') with half the diagonal) R, and dQ = (dA - Q dR) / R.
void Qr::jvp(TangentContext& c) {
  check_determined(c);
  const SourceLocation where = c.where();
  const Tensor &q = c.out(0), &r = c.out(1), &da = c.tangent(0);
  const Tensor x = over_upper(product(turned(q, where), da, where), r, where);
  const Tensor both = add(upper_part(x, where), turned(lower_part(x, where), where));
  const Tensor dr = product(both, r, where);
  c.give(0, over_upper(sub(da, product(q, dr, where)), r, where));
  c.give(1, dr);
}

// ---- LU ---------------------------------------------------------------------------------------------------

void PivotedLu::infer(const Call& call, TensorImpl* const* outputs) {
  const Shape& shape = check_matrices(call);
  const TensorImpl& a = *call.operands[0];
  set_like(a, shape, *outputs[0]);
  outputs[1]->set_type(kInt32, a.device(), with_sizes(batch_of(shape), {matrix_sizes(shape).least}));
}

namespace {

// Row i of the result is row order[i] of x (..., rows, columns).
Tensor ordered_rows(const Tensor& x, const Tensor& pivots, bool inverse, SourceLocation where) {
  const Shape& shape = x.impl().shape();
  const Tensor order = emit<PivotOrder>({pivots.get()}, {shape[shape.rank() - 2], inverse}, where);
  return gather(Operand(x, where), -2,
                expand_to(Operand(unsqueeze(Operand(order, where), -1), where), shape));
}

// A matrix of the shape of LU factors: the square one that has both diagonals, and what is below or beside it, if
// anything is.
struct Blocks {
  Tensor square, below, beside;

  Blocks(const Tensor& x, SourceLocation where) : square(x) {
    const auto [m, n, k] = matrix_sizes(x.impl().shape());
    const Operand all(x, where);
    if (n < m) square = narrow(all, -2, 0, k), below = narrow(all, -2, k, m - k);
    if (m < n) square = narrow(all, -1, 0, k), beside = narrow(all, -1, k, n - k);
  }
};

Tensor joined(const Tensor& square, const Tensor& below, const Tensor& beside, SourceLocation where) {
  if (below.defined()) return cat({square, below}, -2, where);
  return beside.defined() ? cat({square, beside}, -1, where) : square;
}

Tensor unit_lower(const Tensor& lu, SourceLocation where) {
  return add(lower_part(lu, where), eyes(lu.impl().type(), where));
}

}  // namespace

// With indices 1 for the square block, 2 for the rest, and P the order of rows:
//   P dA_1 = L_1'^-1 (tril(L_1' gL_1 - gU_2 U_2', -1) + triu(gU_1 U_1' - L_2' gL_2)) / U_1'
//   P dA_2 = gL_2 / U_1' below, or L_1'^-1 gU_2 beside.
void PivotedLu::vjp(RuleContext& c) {
  if (!c.grad(0).defined()) return;
  const SourceLocation where = c.where();
  const Blocks lu(c.out(0), where), g(c.grad(0), where);
  const Tensor lu_turned = turned(lu.square, where);
  Tensor lower = product(turned(unit_lower(lu.square, where), where), lower_part(g.square, where), where);
  Tensor upper = product(upper_part(g.square, where), turned(upper_part(lu.square, where), where), where);
  Tensor below, beside;
  if (g.below.defined()) {
    upper = sub(upper, product(turned(lu.below, where), g.below, where));
    below = over_upper_turned(g.below, lu.square, where);
  }
  if (g.beside.defined()) {
    lower = sub(lower, product(g.beside, turned(lu.beside, where), where));
    beside = triangular(lu_turned, g.beside, kUnitUpper, where);
  }
  const Tensor middle = add(lower_part(lower, where), upper_part(upper, where));
  const Tensor square = over_upper_turned(triangular(lu_turned, middle, kUnitUpper, where), lu.square, where);
  c.give(0, ordered_rows(joined(square, below, beside, where), c.out(1), true, where));
}

// With F = L_1^-1 P dA_1 / U_1: dL_1 = L_1 tril(F, -1), dU_1 = triu(F) U_1, dL_2 = (P dA_2 - L_2 dU_1) / U_1, and
// dU_2 = L_1^-1 (P dA_2 - dL_1 U_2).
void PivotedLu::jvp(TangentContext& c) {
  const SourceLocation where = c.where();
  const Blocks lu(c.out(0), where), da(ordered_rows(c.tangent(0), c.out(1), false, where), where);
  const Tensor f = over_upper(triangular(lu.square, da.square, kUnitLower, where), lu.square, where);
  const Tensor dl = product(unit_lower(lu.square, where), lower_part(f, where), where),
               du = product(upper_part(f, where), upper_part(lu.square, where), where);
  Tensor below, beside;
  if (da.below.defined()) below = over_upper(sub(da.below, product(lu.below, du, where)), lu.square, where);
  if (da.beside.defined())
    beside = triangular(lu.square, sub(da.beside, product(dl, lu.beside, where)), kUnitLower, where);
  c.give(0, joined(add(dl, du), below, beside, where));
}

void PivotOrder::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& pivots = *call.operands[0];
  if (pivots.dtype() != kInt32) fail_call(call, Category::dtype_mismatch, "pivots must be int32");
  if (pivots.rank() == 0) fail_call(call, Category::bad_dim, "pivots need a dim");
  const Dim rows = call.attrs_as<Attrs>().rows;
  const Shape shape = with_sizes(without_last(pivots.shape()), {rows});
  check_sizes(call, shape);
  if (rows < pivots.shape().back())
    fail_call(call, Category::shape_mismatch, "there are more pivots than rows");
  outputs[0]->set_type(kInt64, pivots.device(), shape);
}

}  // namespace ops

// ---- public functions -------------------------------------------------------------------------------------

namespace linalg {

QrResult qr(Operand A, std::string_view mode) {
  const NamedCall call("qr", A.where());
  const SourceLocation where = A.where();
  if (mode != "reduced" && mode != "complete" && mode != "r")
    fail(Category::bad_argument, "qr", fmt::format("mode must be reduced, complete or r, not {}", mode),
         where);
  const ops::AutocastFunction cast(CastPolicy::float32, {&A.tensor()});
  const Tensor a = cast(A);
  const auto decompose = [&](const Tensor& x, bool complete) {
    const auto [q, r] = ops::emit_all<ops::Qr>({x.get()}, {complete}, where);
    return QrResult{q, r};
  };
  QrResult result;
  if (const Shape& shape = a.impl().shape(); shape.rank() >= 2 && shape[shape.rank() - 2] < shape.back()) {
    const ops::Blocks blocks(a, where);
    result = decompose(blocks.square, false);
    result.R = cat({result.R, ops::product(ops::turned(result.Q, where), blocks.beside, where)}, -1, where);
  } else {
    result = decompose(a, mode == "complete");
  }
  if (mode == "r") result.Q = empty({0}, {a.dtype(), a.device()}, where);
  return result;
}

LuFactorResult lu_factor(Operand A) {
  const NamedCall call("lu_factor", A.where());
  const auto [lu, pivots] = ops::emit_all<ops::PivotedLu>({A.tensor().get()}, {}, A.where());
  return {lu, pivots};
}

namespace {

void check_factors(const Tensor& lu, const Tensor& pivots, SourceLocation where) {
  const Shape& shape = lu.impl().shape();
  if (pivots.dtype() != kInt32)
    fail(Category::dtype_mismatch, "lu_solve", fmt::format("pivots {} are not int32", describe(pivots)),
         where);
  if (shape.rank() < 2)
    fail(Category::bad_dim, "lu_solve", fmt::format("LU {} is not a matrix", describe(lu)), where);
  if (!(shape[shape.rank() - 2] == shape.back()))
    fail(Category::shape_mismatch, "lu_solve", fmt::format("LU {} is not square", describe(lu)), where);
  if (!(pivots.impl().shape() == ops::without_last(shape)))
    fail(Category::shape_mismatch, "lu_solve",
         fmt::format("pivots {} do not fit LU {}", describe(pivots), describe(lu)), where);
}

}  // namespace

// X A = B is A' X' = B'. With P A = L U: A X = B is L U X = P B, and A' X = B is U' L' (P X) = B.
Tensor lu_solve(Operand LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint) {
  const NamedCall call("lu_solve", LU.where());
  const SourceLocation where = LU.where();
  const ops::AutocastFunction cast(CastPolicy::float32, {&LU.tensor(), &B});
  Tensor lu = cast(LU), b = cast(B);
  check_factors(lu, pivots, where);
  ops::check_system(lu, b, left, "lu_solve", where);
  const Shape batch = ops::common_batch(lu, b, "lu_solve");
  const Tensor order = ops::expand_batch(pivots, batch, 1, where);
  lu = ops::expand_batch(lu, batch, 2, where), b = ops::expand_batch(b, batch, 2, where);
  if (!left) b = ops::turned(b, where);
  Tensor x;
  if (adjoint == left) {
    const Tensor lu_turned = ops::turned(lu, where), y = ops::triangular(lu_turned, b, ops::kLower, where);
    x = ops::ordered_rows(ops::triangular(lu_turned, y, ops::kUnitUpper, where), order, true, where);
  } else {
    const Tensor y = ops::triangular(lu, ops::ordered_rows(b, order, false, where), ops::kUnitLower, where);
    x = ops::triangular(lu, y, ops::kUpper, where);
  }
  return left ? x : ops::turned(x, where);
}

}  // namespace linalg

// L L' X = B; with U = L': U' U X = B.
Tensor cholesky_solve(Operand B, const Tensor& L, bool upper) {
  const NamedCall call("cholesky_solve", B.where());
  const SourceLocation where = B.where();
  const ops::AutocastFunction cast(CastPolicy::float32, {&B.tensor(), &L});
  Tensor b = cast(B), l = cast(Operand(L, where));
  ops::check_system(l, b, true, "cholesky_solve", where);
  const Shape batch = ops::common_batch(l, b, "cholesky_solve");
  l = ops::expand_batch(l, batch, 2, where), b = ops::expand_batch(b, batch, 2, where);
  if (upper) l = ops::turned(l, where);
  const Tensor y = ops::triangular(l, b, ops::kLower, where);
  return ops::triangular(ops::turned(l, where), y, ops::kUpper, where);
}

// T = L^-1: the inverse of L L' is T' T.
Tensor cholesky_inverse(Operand L, bool upper) {
  const NamedCall call("cholesky_inverse", L.where());
  const SourceLocation where = L.where();
  const ops::AutocastFunction cast(CastPolicy::float32, {&L.tensor()});
  Tensor l = cast(L);
  if (l.dim() < 2)
    fail(Category::bad_dim, "cholesky_inverse", fmt::format("{} is not a matrix", describe(l)), where);
  if (upper) l = ops::turned(l, where);
  const Tensor t = ops::triangular(l, ops::eyes(l.impl().type(), where), ops::kLower, where);
  return ops::product(ops::turned(t, where), t, where);
}

}  // namespace retrograd
