// The public functions of ops/linalg.h: they broadcast, factor and select the ops.
#include <limits>

#include <fmt/format.h>

#include "ops/comparison.h"

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/linalg_parts.h"
#include "ops/reduce.h"
#include "ops/ternary.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace {

ops::Factors factor(Operand x) {
  const auto [lu, permutation] = ops::emit_all<ops::LuFactor>({x.tensor().get()}, {}, x.where());
  return {x.tensor(), lu, permutation};
}

}  // namespace

Tensor inverse(Operand x) {
  const NamedCall call("inverse", x.where());
  return ops::emit<ops::Inverse>({x.tensor().get()}, {}, x.where());
}

Tensor det(Operand x) {
  const NamedCall call("det", x.where());
  const ops::Factors f = factor(x);
  return ops::emit<ops::LuDet>({f.a.get(), f.lu.get(), f.permutation.get()}, {}, x.where());
}

SlogdetResult slogdet(Operand x) {
  const NamedCall call("slogdet", x.where());
  const ops::Factors f = factor(x);
  const auto [sign, logarithm] =
      ops::emit_all<ops::LuSlogdet>({f.a.get(), f.lu.get(), f.permutation.get()}, {}, x.where());
  return {sign, logarithm};
}

Tensor logdet(Operand x) {
  const NamedCall call("logdet", x.where());
  const SlogdetResult r = slogdet(x);
  const Tensor negative = lt(Operand(r.sign, x.where()), 0.0);
  return where(negative, std::numeric_limits<double>::quiet_NaN(), Operand(r.logabsdet, x.where()));
}

Tensor cholesky(Operand x, bool upper) {
  const NamedCall call("cholesky", x.where());
  return ops::emit<ops::Cholesky>({x.tensor().get()}, {upper}, x.where());
}

namespace ops {

Shape common_batch(const Tensor& a, const Tensor& b, std::string_view op) {
  return broadcast_shapes(batch_of(a.impl().shape()), batch_of(b.impl().shape()), op);
}

Tensor expand_batch(const Tensor& x, const Shape& batch, int kept, SourceLocation where) {
  Shape shape = batch;
  const Shape& from = x.impl().shape();
  for (int i = from.rank() - kept; i < from.rank(); ++i) shape.push_back(from[i]);
  return expand_to(Operand(x, where), shape);
}

void check_system(const Tensor& a, const Tensor& b, bool left, std::string_view op, SourceLocation where) {
  for (const Tensor& x : {a, b})
    if (x.dim() < 2) fail(Category::bad_dim, op, fmt::format("{} is not a matrix", describe(x)), where);
  if (a.dtype() != b.dtype())
    fail(Category::dtype_mismatch, op, fmt::format("dtypes of {} and {} differ", describe(a), describe(b)),
         where);
  const Shape &m = a.impl().shape(), &rhs = b.impl().shape();
  if (!(m.back() == rhs[rhs.rank() - (left ? 2 : 1)]))
    fail(Category::shape_mismatch, op,
         fmt::format("no solution of {} with A {}, B {}", left ? "A X = B" : "X A = B", describe(a),
                     describe(b)),
         where);
}

bool is_vector(const Shape& a, const Shape& b) {
  if (b.rank() == 1) return true;
  return b.rank() >= 1 && b.rank() == a.rank() - 1 && b == without_last(a);
}

}  // namespace ops

// X A = B is A' X' = B'. A is factored before it is expanded to the batch.
Tensor solve(Operand A, Operand B, bool left) {
  const NamedCall call("solve", A.where());
  const SourceLocation where = A.where();
  const ops::AutocastFunction cast(CastPolicy::float32, {&A.tensor(), &B.tensor()});
  const Tensor a = cast(A);
  Tensor b = cast(B);
  const bool vector = ops::is_vector(a.impl().shape(), b.impl().shape());
  if (vector) b = unsqueeze(Operand(b, where), -1);
  ops::check_system(a, b, left, "solve", where);
  ops::Factors f = factor(Operand(a, where));
  const Shape batch = ops::common_batch(a, b, "solve");
  b = ops::expand_batch(b, batch, 2, where);
  if (!left) b = ops::turned(b, where);
  f.a = ops::expand_batch(f.a, batch, 2, where);
  f.lu = ops::expand_batch(f.lu, batch, 2, where);
  f.permutation = ops::expand_batch(f.permutation, batch, 1, where);
  const Tensor x = ops::lu_solve(f, b, {!left, true}, where);
  if (vector) return squeeze(Operand(x, where), {-1});
  return left ? x : ops::turned(x, where);
}

Tensor solve_triangular(Operand A, Operand B, bool upper, bool left, bool unitriangular) {
  const NamedCall call("solve_triangular", A.where());
  const SourceLocation where = A.where();
  const ops::AutocastFunction cast(CastPolicy::float32, {&A.tensor(), &B.tensor()});
  Tensor a = cast(A), b = cast(B);
  ops::check_system(a, b, left, "solve_triangular", where);
  const Shape batch = ops::common_batch(a, b, "solve_triangular");
  a = ops::expand_batch(a, batch, 2, where), b = ops::expand_batch(b, batch, 2, where);
  if (left) return ops::triangular(a, b, {upper, unitriangular}, where);
  const Tensor x =
      ops::triangular(ops::turned(a, where), ops::turned(b, where), {!upper, unitriangular}, where);
  return ops::turned(x, where);
}

Tensor trace(Operand x) {
  const NamedCall call("trace", x.where());
  const detail::AutocastOff not_as_a_sum;
  const Tensor& m = x.tensor();
  if (m.dim() != 2)
    fail(Category::bad_dim, "trace", fmt::format("{} is not a matrix", describe(m)), x.where());
  if (m.dtype() == kBool) fail(Category::dtype_mismatch, "trace", "it is not defined for bool", x.where());
  return sum(Operand(diagonal(x), x.where()));
}

Tensor matrix_power(Operand x, int64_t n) {
  const NamedCall call("matrix_power", x.where());
  const SourceLocation where = x.where();
  const TensorType type = x.tensor().impl().type();
  const Shape& shape = type.shape;
  if (shape.rank() < 2)
    fail(Category::bad_dim, "matrix_power", fmt::format("{} is not a matrix", describe(x.tensor())), where);
  if (!(shape.back() == shape[shape.rank() - 2]))
    fail(Category::shape_mismatch, "matrix_power", fmt::format("{} is not square", describe(x.tensor())),
         where);
  if (n == 0) return clone(Operand(ops::eyes(type, where), where));
  if (n == 1) return clone(x);
  Tensor square = n < 0 ? inverse(x) : x.tensor(), result;
  for (uint64_t rest = n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n);;) {
    if (rest & 1) result = result.defined() ? ops::product(result, square, where) : square;
    rest >>= 1;
    if (rest == 0) break;
    square = ops::product(square, square, where);
  }
  return result;
}

}  // namespace retrograd
