// Type rules, derivatives and public functions of ops/spectral.h. In formulas ' is the transpose.
#include "ops/spectral.h"

#include <limits>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/join.h"
#include "ops/linalg_parts.h"
#include "ops/rearrange.h"
#include "ops/reduce.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

// (..., k) with entry j in column j, and with entry i in row i, of all rows and columns.
Tensor in_columns(const Tensor& s, SourceLocation where) { return unsqueeze(Operand(s, where), -2); }
Tensor in_rows(const Tensor& s, SourceLocation where) { return unsqueeze(Operand(s, where), -1); }

Tensor diagonals(const Tensor& x, SourceLocation where) { return diagonal(Operand(x, where), 0, -2, -1); }
Tensor hollow(const Tensor& x, SourceLocation where) {
  return add(tril(Operand(x, where), -1), triu(Operand(x, where), 1));
}

// Unit matrices for (..., k).
Tensor units(const Tensor& s, SourceLocation where) {
  TensorType type = s.impl().type();
  type.shape.push_back(type.shape.back());
  return eyes(type, where);
}

// s_j - s_i, ones on the diagonal.
Tensor gaps(const Tensor& s, SourceLocation where) {
  return add(sub(in_columns(s, where), in_rows(s, where)), units(s, where));
}

// s_j + s_i, above zero on the diagonal.
Tensor sums(const Tensor& s, SourceLocation where) {
  return add(add(in_columns(s, where), in_rows(s, where)), units(s, where));
}

// Entry i: column i of x times column i of y.
Tensor column_products(const Tensor& x, const Tensor& y, SourceLocation where) {
  return sum(Operand(mul(x, y), where), {-2});
}

// The symmetric matrix of which x has one triangle.
Tensor symmetric(const Tensor& x, bool upper, SourceLocation where) {
  const Operand m(x, where);
  return upper ? add(triu(m), turned(triu(m, 1), where)) : add(tril(m), turned(tril(m, -1), where));
}

}  // namespace

// ---- symmetric matrices -----------------------------------------------------------------------------------

void Eigh::infer(const Call& call, TensorImpl* const* outputs) {
  const Shape& shape = check_square(call);
  set_like(*call.operands[0], without_last(shape), *outputs[0]);
  set_like(*call.operands[0], shape, *outputs[1]);
}

// With W = V' gV: dA = V (diag(gw) + (W - W') / 2 / (w_j - w_i)) V'. Only the skew part of W counts, since V stays
// orthogonal.
void Eigh::vjp(RuleContext& c) {
  const SourceLocation where = c.where();
  const Tensor& v = c.out(1);
  const Tensor v_turned = turned(v, where);
  Tensor left;
  if (c.grad(0).defined()) left = mul(v, in_columns(c.grad(0), where));
  if (c.grad(1).defined()) {
    const Tensor w = product(v_turned, c.grad(1), where);
    const Tensor middle = div(mul(sub(w, turned(w, where)), 0.5), gaps(c.out(0), where));
    left = plus(left, product(v, middle, where));
  }
  if (left.defined()) c.give(0, product(left, v_turned, where));
}

// With P = V' dA V: dw is its diagonal, and dV = V (P / (w_j - w_i), zero on the diagonal).
void Eigh::jvp(TangentContext& c) {
  const SourceLocation where = c.where();
  const Tensor& v = c.out(1);
  const Tensor da = symmetric(c.tangent(0), c.attrs<Attrs>().upper, where);
  const Tensor p = product(product(turned(v, where), da, where), v, where);
  c.give(0, diagonals(p, where));
  c.give(1, product(v, div(hollow(p, where), gaps(c.out(0), where)), where));
}

void Eigvalsh::infer(const Call& call, TensorImpl* const* outputs) {
  set_like(*call.operands[0], without_last(check_square(call)), *outputs[0]);
}

namespace {

template <class Context>
Tensor vectors_of(Context& c) {
  return linalg::eigh(c.in(0), c.template attrs<Eigvalsh::Attrs>().upper ? "U" : "L").eigenvectors;
}

}  // namespace

void Eigvalsh::vjp(RuleContext& c) {
  const Tensor v = vectors_of(c);
  c.give(0, product(mul(v, in_columns(c.grad(), c.where())), turned(v, c.where()), c.where()));
}

void Eigvalsh::jvp(TangentContext& c) {
  const Tensor v = vectors_of(c), da = symmetric(c.tangent(0), c.attrs<Attrs>().upper, c.where());
  c.give(0, column_products(v, product(da, v, c.where()), c.where()));
}

// ---- singular values --------------------------------------------------------------------------------------

namespace {

// Orthonormal columns (..., rows, count), of which the first `least` belong to singular values.
struct Side {
  Tensor all, first, beyond;  // beyond: undefined if there are none

  Side(const Tensor& x, Dim least, SourceLocation where) : all(x), first(x) {
    const Dim count = x.impl().shape().back();
    if (count == least) return;
    first = narrow(Operand(x, where), -1, 0, least);
    beyond = narrow(Operand(x, where), -1, least, count - least);
  }
};

// The gradient of such columns: `skew` for rotations within the first ones, `outward` for those out of their space.
struct SideGradient {
  Tensor skew, outward;

  SideGradient(const Side& x, const Tensor& all, Dim rows, Dim least, SourceLocation where) {
    if (!all.defined()) return;
    const Side g(all, least, where);
    const Tensor w = product(turned(x.first, where), g.first, where);
    skew = sub(w, turned(w, where));
    if (rows == least) return;
    if (!x.beyond.defined()) {
      outward = sub(g.first, product(x.first, w, where));
      return;
    }
    const Tensor to_first = product(turned(x.beyond, where), g.first, where),
                 from_first = product(turned(g.beyond, where), x.first, where);
    outward = product(x.beyond, sub(to_first, from_first), where);
  }
};

}  // namespace

void Svd::infer(const Call& call, TensorImpl* const* outputs) {
  const Shape& shape = check_matrices(call);
  const auto [m, n, k] = matrix_sizes(shape);
  const bool full = call.attrs_as<Attrs>().full_matrices;
  const Shape batch = batch_of(shape);
  const TensorImpl& a = *call.operands[0];
  set_like(a, with_sizes(batch, {m, full ? m : k}), *outputs[0]);
  set_like(a, with_sizes(batch, {k}), *outputs[1]);
  set_like(a, with_sizes(batch, {full ? n : k, n}), *outputs[2]);
}

// With E = s_j^2 - s_i^2 and the gradients of both sides:
//   dA = (U (diag(gs) + (skew_U / E) S + S (skew_V / E)) + outward_U / S) V' + U (outward_V / S)'.
// E is divided by in two factors, of which the sum goes with S: s_j / (s_i + s_j) does not leave the range.
void Svd::vjp(RuleContext& c) {
  const SourceLocation where = c.where();
  const auto [m, n, k] = matrix_sizes(c.type(0).shape);
  const Tensor& s = c.out(1);
  const Side u(c.out(0), k, where), v(turned(c.out(2), where), k, where);
  const SideGradient gu(u, c.grad(0), m, k, where);
  const SideGradient gv(v, c.grad(2).defined() ? turned(c.grad(2), where) : Tensor(), n, k, where);
  Tensor middle;
  if (c.grad(1).defined()) middle = mul(units(s, where), in_columns(c.grad(1), where));
  if (gu.skew.defined())
    middle = plus(middle, mul(div(gu.skew, gaps(s, where)), div(in_columns(s, where), sums(s, where))));
  if (gv.skew.defined())
    middle = plus(middle, mul(div(gv.skew, gaps(s, where)), div(in_rows(s, where), sums(s, where))));
  if (!middle.defined()) return;
  Tensor left = product(u.first, middle, where);
  if (gu.outward.defined()) left = add(left, div(gu.outward, in_columns(s, where)));
  Tensor da = product(left, turned(v.first, where), where);
  if (gv.outward.defined()) {
    const Tensor right = turned(div(gv.outward, in_columns(s, where)), where);
    da = add(da, product(u.first, right, where));
  }
  c.give(0, da);
}

namespace {

// The tangent of the columns x of one side: `p` is U' dA V, turned for V, and `image` (..., rows, k) is dA V, or dA' U.
Tensor side_tangent(const Side& x, const Tensor& p, const Tensor& image, const Tensor& s, Dim rows, Dim least,
                    SourceLocation where) {
  const Tensor ratio = div(in_columns(s, where), sums(s, where)),
               other = div(in_rows(s, where), sums(s, where));
  const Tensor rotated = add(mul(p, ratio), mul(turned(p, where), other));
  Tensor dx = product(x.first, div(hollow(rotated, where), gaps(s, where)), where);
  if (rows == least) return dx;
  const Tensor outward = div(sub(image, product(x.first, p, where)), in_columns(s, where));
  dx = add(dx, outward);
  if (!x.beyond.defined()) return dx;
  const Tensor back = product(x.first, product(turned(outward, where), x.beyond, where), where);
  return cat({dx, neg(back)}, -1, where);
}

}  // namespace

// With P = U' dA V: ds is its diagonal, dU = U (hollow(P S + S P') / E) + (dA V - U P) / S, and dV in the same way of
// the transposes.
void Svd::jvp(TangentContext& c) {
  const SourceLocation where = c.where();
  const auto [m, n, k] = matrix_sizes(c.type(0).shape);
  const Tensor &s = c.out(1), &da = c.tangent(0);
  const Side u(c.out(0), k, where), v(turned(c.out(2), where), k, where);
  const Tensor right = product(da, v.first, where), left = product(turned(da, where), u.first, where);
  const Tensor p = product(turned(u.first, where), right, where);
  c.give(0, side_tangent(u, p, right, s, m, k, where));
  c.give(1, diagonals(p, where));
  c.give(2, turned(side_tangent(v, turned(p, where), left, s, n, k, where), where));
}

void Svdvals::infer(const Call& call, TensorImpl* const* outputs) {
  const Shape& shape = check_matrices(call);
  set_like(*call.operands[0], with_sizes(batch_of(shape), {matrix_sizes(shape).least}), *outputs[0]);
}

void Svdvals::vjp(RuleContext& c) {
  const linalg::SvdResult a = linalg::svd(c.in(0), false);
  c.give(0, product(mul(a.U, in_columns(c.grad(), c.where())), a.Vh, c.where()));
}

void Svdvals::jvp(TangentContext& c) {
  const linalg::SvdResult a = linalg::svd(c.in(0), false);
  const Tensor image = product(c.tangent(0), turned(a.Vh, c.where()), c.where());
  c.give(0, column_products(a.U, image, c.where()));
}

}  // namespace ops

// ---- public functions -------------------------------------------------------------------------------------

namespace linalg {
namespace {

bool is_upper(std::string_view uplo, std::string_view op, SourceLocation where) {
  if (uplo == "U" || uplo == "u") return true;
  if (uplo != "L" && uplo != "l")
    fail(Category::bad_argument, op, fmt::format("UPLO must be L or U, not {}", uplo), where);
  return false;
}

// The relative tolerance of ranks.
Scalar default_rtol(const Tensor& a, std::optional<double> atol, std::optional<double> rtol) {
  if (rtol) return *rtol;
  if (atol.value_or(0) > 0) return 0.0;
  const auto [m, n, least] = ops::matrix_sizes(a.impl().shape());
  const double epsilon = a.dtype() == kFloat64 ? std::numeric_limits<double>::epsilon()
                                               : double{std::numeric_limits<float>::epsilon()};
  return Scalar(m < n ? n : m) * Scalar(epsilon);
}

}  // namespace

EighResult eigh(Operand A, std::string_view UPLO) {
  const NamedCall call("eigh", A.where());
  auto [values, vectors] =
      ops::emit_all<ops::Eigh>({A.tensor().get()}, {is_upper(UPLO, "eigh", A.where())}, A.where());
  return {values, vectors};
}

Tensor eigvalsh(Operand A, std::string_view UPLO) {
  const NamedCall call("eigvalsh", A.where());
  return ops::emit<ops::Eigvalsh>({A.tensor().get()}, {is_upper(UPLO, "eigvalsh", A.where())}, A.where());
}

SvdResult svd(Operand A, bool full_matrices) {
  const NamedCall call("svd", A.where());
  auto [u, s, vh] = ops::emit_all<ops::Svd>({A.tensor().get()}, {full_matrices}, A.where());
  return {u, s, vh};
}

Tensor svdvals(Operand A) {
  const NamedCall call("svdvals", A.where());
  return ops::emit<ops::Svdvals>({A.tensor().get()}, {}, A.where());
}

Tensor matrix_rank(Operand A, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  const NamedCall call("matrix_rank", A.where());
  const SourceLocation where = A.where();
  const NoGradGuard no_grad;
  const Tensor s = hermitian ? abs(Operand(eigvalsh(A), where)) : svdvals(A);
  const Shape& shape = s.impl().shape();
  if (shape.back() == 0) return zeros_of({kInt64, s.device(), ops::without_last(shape)}, where);
  const Scalar relative = default_rtol(A.tensor(), atol, rtol);
  const Tensor largest = amax(Operand(s, where), {-1}, true);
  const Tensor bound =
      clamp(Operand(mul(Operand(largest, where), relative), where), Operand(atol.value_or(0.0)));
  return sum(Operand(gt(s, bound), where), {-1});
}

}  // namespace linalg
}  // namespace retrograd
