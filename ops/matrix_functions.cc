// Type rules, derivatives and public functions of ops/matrix_functions.h. In formulas ' is the transpose.
#include "ops/matrix_functions.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/join.h"
#include "ops/linalg_parts.h"
#include "ops/reduce.h"
#include "ops/spectral.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace ops {

// ---- exponential ------------------------------------------------------------------------------------------

void MatrixExp::infer(const Call& call, TensorImpl* const* outputs) {
  set_like(*call.operands[0], check_square(call), *outputs[0]);
}

namespace {

// The derivative of exp at A in a direction E: the block above the diagonal of exp ((A, E), (0, A)).
Tensor exp_derivative(const Tensor& a, const Tensor& e, SourceLocation where) {
  const Dim n = a.impl().shape().back();
  const Tensor zero = zeros_of(a.impl().type(), where);
  const Tensor blocks = cat({cat({a, e}, -1, where), cat({zero, a}, -1, where)}, -2, where);
  const Tensor above = narrow(Operand(matrix_exp(Operand(blocks, where)), where), -2, 0, n);
  return narrow(Operand(above, where), -1, n, n);
}

}  // namespace

// The derivative is linear in E, and its transpose is the derivative at A'.
void MatrixExp::vjp(RuleContext& c) {
  c.give(0, exp_derivative(turned(c.in(0).tensor(), c.where()), c.grad(), c.where()));
}
void MatrixExp::jvp(TangentContext& c) {
  c.give(0, exp_derivative(c.in(0).tensor(), c.tangent(0), c.where()));
}

// ---- pseudo-inverse ---------------------------------------------------------------------------------------

void Pinv::infer(const Call& call, TensorImpl* const* outputs) {
  const bool hermitian = call.attrs_as<Attrs>().hermitian;
  const Shape& shape = hermitian ? check_square(call) : check_matrices(call);
  const auto [m, n, least] = matrix_sizes(shape);
  set_like(*call.operands[0], with_sizes(batch_of(shape), {n, m}), *outputs[0]);
}

namespace {

// X - A (P X), what of X is outside of A's column space; and X - P (A X), what is outside of its row space.
Tensor outside(const Tensor& a, const Tensor& p, const Tensor& x, SourceLocation where) {
  return sub(x, product(a, product(p, x, where), where));
}

}  // namespace

// dP = -P dA P + P P' dA' (I - A P) + (I - P A) dA' P' P, transposed.
void Pinv::vjp(RuleContext& c) {
  const SourceLocation where = c.where();
  const Tensor a = c.in(0).tensor(), &p = c.out(), p_turned = turned(p, where), g = turned(c.grad(), where);
  const Tensor pg = product(p, g, where), gp = product(g, p, where);
  const Tensor inner = neg(turned(product(pg, p, where), where));
  const Tensor left = product(outside(a, p, gp, where), p_turned, where);
  const Tensor right = outside(turned(a, where), p_turned, turned(pg, where), where);
  c.give(0, add(inner, add(left, product(p_turned, turned(right, where), where))));
}

void Pinv::jvp(TangentContext& c) {
  const SourceLocation where = c.where();
  const Tensor a = c.in(0).tensor(), &p = c.out(), p_turned = turned(p, where);
  const Tensor &da = c.tangent(0), e = turned(da, where);
  const Tensor inner = neg(product(product(p, da, where), p, where));
  const Tensor rows = outside(p_turned, turned(a, where), turned(product(p_turned, e, where), where), where);
  const Tensor left = product(p, turned(rows, where), where);
  const Tensor right = product(outside(p, a, product(e, p_turned, where), where), p, where);
  c.give(0, add(inner, add(left, right)));
}

// ---- least squares ----------------------------------------------------------------------------------------

void Lstsq::infer(const Call& call, TensorImpl* const* outputs) {
  const Shape& shape = check_matrices(call);
  check_matrices(call, 1);
  check_fits(call, 1);
  Shape result = shape;
  result[shape.rank() - 2] = shape.back();
  result[shape.rank() - 1] = call.operands[1]->shape().back();
  set_like(*call.operands[0], result, *outputs[0]);
}

namespace {

Tensor least_squares(const Tensor& a, const Tensor& b, SourceLocation where) {
  return emit<Lstsq>({a.get(), b.get()}, {}, where);
}

}  // namespace

// X = P B with P = pinv(A). With Z = P' g: dB = Z, and by the derivative of P
//   dA = -Z X' + (B - A X) (P Z)' + (P' X) (g - A' Z)'.
void Lstsq::vjp(RuleContext& c) {
  const SourceLocation where = c.where();
  const Tensor a = c.in(0).tensor(), a_turned = turned(a, where), &g = c.grad();
  const Tensor z = least_squares(a_turned, g, where);
  if (c.needs(1)) c.give(1, z);
  if (!c.needs(0)) return;
  const Tensor& x = c.out();
  const Tensor residual = sub(c.in(1), Operand(product(a, x, where), where));
  const Tensor by_residual = product(residual, turned(least_squares(a, z, where), where), where);
  const Tensor of_row_space = sub(g, product(a_turned, z, where));
  const Tensor by_norm = product(least_squares(a_turned, x, where), turned(of_row_space, where), where);
  c.give(0, add(sub(by_residual, product(z, turned(x, where), where)), by_norm));
}

// dX = P (dB - dA X + P' dA' (B - A X)) + W - P A W, W = dA' P' X.
void Lstsq::jvp(TangentContext& c) {
  const SourceLocation where = c.where();
  const Tensor a = c.in(0).tensor(), a_turned = turned(a, where), &x = c.out();
  Tensor right = c.tangent(1), outer;
  if (c.needs(0)) {
    const Tensor &da = c.tangent(0), e = turned(da, where);
    const Tensor residual = sub(c.in(1), Operand(product(a, x, where), where));
    const Tensor by_residual = least_squares(a_turned, product(e, residual, where), where);
    right = plus(right, sub(by_residual, product(da, x, where)));
    const Tensor w = product(e, least_squares(a_turned, x, where), where);
    outer = sub(w, least_squares(a, product(a, w, where), where));
  }
  c.give(0, plus(outer, least_squares(a, right, where)));
}

}  // namespace ops

// ---- public functions -------------------------------------------------------------------------------------

Tensor matrix_exp(Operand input) {
  const NamedCall call("matrix_exp", input.where());
  const ops::AutocastFunction cast(CastPolicy::float32, {&input.tensor()});
  const Tensor x = cast(input);
  const ops::Widened wide(x);
  return wide.back(ops::emit<ops::MatrixExp>({wide(x).get()}, {}, input.where()));
}

namespace linalg {

Tensor pinv(Operand A, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  const NamedCall call("pinv", A.where());
  const double absolute = atol.value_or(0.0);
  const double relative = rtol ? std::max(*rtol, 0.0) : absolute > 0 ? 0.0 : -1.0;
  return ops::emit<ops::Pinv>({A.tensor().get()}, {absolute, relative, hermitian}, A.where());
}

namespace {

void check_least_squares(const Tensor& a, const Tensor& b, SourceLocation where) {
  for (const Tensor& x : {a, b})
    if (x.dim() < 2) fail(Category::bad_dim, "lstsq", fmt::format("{} is not a matrix", describe(x)), where);
  if (a.dtype() != b.dtype())
    fail(Category::dtype_mismatch, "lstsq",
         fmt::format("dtypes of {} and {} differ", describe(a), describe(b)), where);
  if (!(ops::matrix_sizes(a.impl().shape()).rows == ops::matrix_sizes(b.impl().shape()).rows))
    fail(Category::shape_mismatch, "lstsq",
         fmt::format("A {} and B {} have different numbers of rows", describe(a), describe(b)), where);
}

}  // namespace

Tensor lstsq(Operand A, Operand B) {
  const NamedCall call("lstsq", A.where());
  const SourceLocation where = A.where();
  const ops::AutocastFunction cast(CastPolicy::float32, {&A.tensor(), &B.tensor()});
  Tensor a = cast(A), b = cast(B);
  const bool vector = a.dim() >= 2 && ops::is_vector(a.impl().shape(), b.impl().shape());
  if (vector) b = unsqueeze(Operand(b, where), -1);
  check_least_squares(a, b, where);
  const Shape batch = ops::common_batch(a, b, "lstsq");
  a = ops::expand_batch(a, batch, 2, where), b = ops::expand_batch(b, batch, 2, where);
  const Tensor x = ops::least_squares(a, b, where);
  return vector ? squeeze(Operand(x, where), {-1}) : x;
}

namespace {

enum class Norm : uint8_t { frobenius, nuclear, column_sum, row_sum, singular_value };

// The two dims in ascending meaning: rows and columns, counted from 0.
IntArray checked_dims(const Tensor& a, const IntArray& dim, SourceLocation where) {
  if (a.dim() < 2)
    fail(Category::bad_dim, "matrix_norm", fmt::format("{} is not a matrix", describe(a)), where);
  if (dim.size() != 2) fail(Category::bad_argument, "matrix_norm", "dim must have two entries", where);
  const int rank = static_cast<int>(a.dim());
  const IntArray dims = {wrap_dim(dim[0], rank, "matrix_norm"), wrap_dim(dim[1], rank, "matrix_norm")};
  if (dims[0] == dims[1]) fail(Category::bad_dim, "matrix_norm", "the entries of dim must differ", where);
  return dims;
}

// The largest or smallest entry of a dim, 0 if there is none.
Tensor extreme(const Tensor& x, int64_t dim, bool largest, SourceLocation where) {
  const Operand all(x, where);
  if (x.impl().shape()[static_cast<int>(dim)] == 0) return sum(all, {dim}, true);
  return largest ? amax(all, {dim}, true) : amin(all, {dim}, true);
}

// With both dims kept.
Tensor kept_norm(const Tensor& a, Norm norm, bool largest, const IntArray& dims, SourceLocation where) {
  const Operand all(a, where);
  const auto extreme_sum = [&](int64_t summed, int64_t other) {
    return extreme(sum(Operand(abs(all), where), {summed}, true), other, largest, where);
  };
  switch (norm) {
    case Norm::frobenius: return vector_norm(all, 2, dims, true);
    case Norm::column_sum: return extreme_sum(dims[0], dims[1]);
    case Norm::row_sum: return extreme_sum(dims[1], dims[0]);
    default: break;
  }
  const Tensor values = svdvals(Operand(movedim(all, dims, {-2, -1}), where));
  const Tensor result = norm == Norm::nuclear ? sum(Operand(values, where), {-1}, true)
                                              : extreme(values, -1 + values.dim(), largest, where);
  const IntArray ascending = {std::min(dims[0], dims[1]), std::max(dims[0], dims[1])};
  const Tensor first = unsqueeze(squeeze(Operand(result, where), {-1}), ascending[0]);
  return unsqueeze(Operand(first, where), ascending[1]);
}

Tensor norm_of(Operand A, Norm norm, bool largest, const IntArray& dim, bool keepdim) {
  const SourceLocation where = A.where();
  const ops::AutocastFunction cast(CastPolicy::float32, {&A.tensor()});
  const Tensor a = cast(A);
  if (!is_floating(a.dtype()))
    fail(Category::dtype_mismatch, "matrix_norm", fmt::format("{} is not floating", describe(a)), where);
  const IntArray dims = checked_dims(a, dim, where);
  const Tensor kept = kept_norm(a, norm, largest, dims, where);
  return keepdim ? kept : squeeze(Operand(kept, where), dims);
}

}  // namespace

Tensor matrix_norm(Operand A, Scalar ord, const IntArray& dim, bool keepdim) {
  const NamedCall call("matrix_norm", A.where());
  const double order = ord.to_double(), size = std::abs(order);
  if (size == 1) return norm_of(A, Norm::column_sum, order > 0, dim, keepdim);
  if (size == 2) return norm_of(A, Norm::singular_value, order > 0, dim, keepdim);
  if (!std::isinf(order))
    fail(Category::bad_argument, "matrix_norm", fmt::format("there is no norm of order {}", order),
         A.where());
  return norm_of(A, Norm::row_sum, order > 0, dim, keepdim);
}

Tensor matrix_norm(Operand A, std::string_view ord, const IntArray& dim, bool keepdim) {
  const NamedCall call("matrix_norm", A.where());
  if (ord != "fro" && ord != "nuc")
    fail(Category::bad_argument, "matrix_norm", fmt::format("there is no norm of order {}", ord), A.where());
  return norm_of(A, ord == "fro" ? Norm::frobenius : Norm::nuclear, true, dim, keepdim);
}

}  // namespace linalg
}  // namespace retrograd
