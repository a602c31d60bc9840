// See ops/distances.h.
#include "ops/distances.h"

#include <cmath>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/index_ops.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

// [.., n, m] and [.., k, m] with the same leading sizes.
void check_vectors(const Call& call, const TensorImpl& a, const TensorImpl& b) {
  check_floating(call);
  if (a.dtype() != b.dtype()) fail_call(call, Category::dtype_mismatch, "operands have different dtypes");
  if (a.rank() < 2 || b.rank() < 2)
    fail_call(call, Category::bad_dim, "rows of vectors have at least two dims");
  const Shape &x = a.shape(), &y = b.shape();
  if (!(x.back() == y.back())) fail_call(call, Category::shape_mismatch, "the vectors have different sizes");
  if (x.rank() != y.rank() || !(without_last(without_last(x)) == without_last(without_last(y))))
    fail_call(call, Category::shape_mismatch, "operands differ in a size before the last two");
  const double p = call.attrs_as<DistanceAttrs>().p.number().as_double();
  if (!(p >= 0)) fail_call(call, Category::bad_argument, fmt::format("p is {}", p));
}

Shape distances_shape(const Shape& a, const Shape& b) {
  Shape shape = a;
  shape[shape.rank() - 1] = b[b.rank() - 2];
  return shape;
}

Tensor gradient_of_a(const Tensor& g, const Tensor& a, const Tensor& b, Scalar p, SourceLocation where) {
  return emit<CdistBackward>({g.get(), a.get(), b.get()}, {p}, where);
}

/// All differences of rows, [.., n, k, m], and what the derivatives at them are made of, in the wider dtype.
class Differences {
 public:
  Differences(const Tensor& a, const Tensor& b, Scalar p)
      : p_(p), wide_(a), d_(between(a, b)), y_(norm()), root_(where(eq(y_, 0), 1.0, y_)) {}

  /// a - b for all pairs of rows, and for their tangents, of which one may be missing.
  Tensor between(const Tensor& a, const Tensor& b) const {
    const Tensor left = a.defined() ? unsqueeze(wide_(a), -2) : Tensor();
    if (!b.defined()) return left;
    const Tensor right = unsqueeze(wide_(b), -3);
    return left.defined() ? sub(left, right) : neg(right);
  }
  /// The derivative of the distance by d.
  Tensor slope() const {
    if (p_ == Scalar(0)) return mul(d_, 0.0);
    if (p_ == Scalar(1)) return sign(d_);
    if (p_ == Scalar(2)) return div(d_, root_);
    if (is_infinite()) return mul(sign(d_), shares());
    return mul(sign(d_), power(p_ - Scalar(1)));
  }
  /// The derivative of slope() in the direction t of d; undefined where it is 0 everywhere.
  Tensor curvature(const Tensor& t) const {
    if (p_ == Scalar(0) || p_ == Scalar(1) || is_infinite()) return {};
    const Tensor u = slope(), along = mul(u, sum(mul(u, t), -1, true));
    const Tensor weighted = p_ == Scalar(2) ? t : mul(power(p_ - Scalar(2)), t);
    return where(eq(y_, 0), 0.0, mul(div(sub(weighted, along), root_), p_ - Scalar(1)));
  }
  const Widened& wide() const { return wide_; }

 private:
  // Vectors of no elements have no largest one.
  Tensor norm() const {
    return shape_of(d_).back() == Dim(0) ? sum(d_, -1, true) : vector_norm(d_, p_, -1, true);
  }
  bool is_infinite() const { return std::isinf(p_.number().as_double()); }
  // (|d| / y)^e, 0 where d is 0.
  Tensor power(Scalar e) const {
    const Tensor is_zero = eq(d_, 0);
    return where(is_zero, 0.0, pow(where(is_zero, 1.0, div(abs(d_), root_)), e));
  }
  Tensor shares() const {
    const Tensor ties = to(eq(abs(d_), y_), y_.dtype());
    return div(ties, sum(ties, -1, true));
  }

  Scalar p_;
  Widened wide_;
  Tensor d_, y_, root_;
};

// [.., n, k] to one number for each d.
Tensor per_pair(const Differences& d, const Tensor& g) { return unsqueeze(d.wide()(g), -1); }

template <class C>
Scalar exponent(C& c) {
  return c.template attrs<DistanceAttrs>().p;
}

}  // namespace

void Cdist::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &a = *call.operands[0], &b = *call.operands[1];
  check_vectors(call, a, b);
  set_like(a, distances_shape(a.shape(), b.shape()), *outputs[0]);
}

void Cdist::vjp(RuleContext& c) {
  const Tensor a = c.in(0).tensor(), b = c.in(1).tensor();
  if (c.needs(0)) c.give(0, gradient_of_a(c.grad(), a, b, exponent(c), c.where()));
  if (c.needs(1)) c.give(1, gradient_of_a(transpose(c.grad(), -2, -1), b, a, exponent(c), c.where()));
}

void Cdist::jvp(TangentContext& c) {
  const Differences d(c.in(0).tensor(), c.in(1).tensor(), exponent(c));
  c.give(0, d.wide().back(sum(mul(d.slope(), d.between(c.tangent(0), c.tangent(1))), -1)));
}

void CdistBackward::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &g = *call.operands[0], &a = *call.operands[1], &b = *call.operands[2];
  check_vectors(call, a, b);
  if (g.dtype() != a.dtype()) fail_call(call, Category::dtype_mismatch, "operands have different dtypes");
  if (!(g.shape() == distances_shape(a.shape(), b.shape())))
    fail_call(call, Category::shape_mismatch, "the gradient has not the shape of the distances");
  set_like(a, a.shape(), *outputs[0]);
}

// For the gradient h of a result r[i] = sum_j g[i,j] u(a[i] - b[j]).
void CdistBackward::vjp(RuleContext& c) {
  const Differences d(c.in(1).tensor(), c.in(2).tensor(), exponent(c));
  const Tensor h = unsqueeze(d.wide()(c.grad()), -2);
  if (c.needs(0)) c.give(0, d.wide().back(sum(mul(d.slope(), h), -1)));
  if (!c.needs(1) && !c.needs(2)) return;
  const Tensor curved = d.curvature(h);
  if (!curved.defined()) return;
  const Tensor by_d = mul(per_pair(d, c.in(0).tensor()), curved);
  if (c.needs(1)) c.give(1, d.wide().back(sum(by_d, -2)));
  if (c.needs(2)) c.give(2, d.wide().back(neg(sum(by_d, -3))));
}

void CdistBackward::jvp(TangentContext& c) {
  const Tensor a = c.in(1).tensor(), b = c.in(2).tensor();
  Tensor tangent;
  if (c.needs(0)) tangent = gradient_of_a(c.tangent(0), a, b, exponent(c), c.where());
  if (c.needs(1) || c.needs(2)) {
    const Differences d(a, b, exponent(c));
    const Tensor curved = d.curvature(d.between(c.tangent(1), c.tangent(2)));
    if (curved.defined())
      tangent = plus(tangent, d.wide().back(sum(mul(per_pair(d, c.in(0).tensor()), curved), -2)));
  }
  c.give(0, tangent);
}

}  // namespace ops

namespace {

void check_exponent(double p, std::string_view op, SourceLocation where) {
  if (!(p >= 0)) fail(Category::bad_argument, op, fmt::format("p is {}, not at least 0", p), where);
}

// With `batch` in front of the last two sizes.
Tensor with_batch(Operand x, const Shape& batch) {
  Shape shape = batch;
  for (int i = x.tensor().impl().rank() - 2; i < x.tensor().impl().rank(); ++i)
    shape.push_back(shape_of(x)[i]);
  return expand_to(x, shape);
}

}  // namespace

Tensor dist(Operand x, const Tensor& other, Scalar p) {
  const NamedCall call("dist", x.where());
  check_exponent(p.number().as_double(), "dist", x.where());
  const ops::Widened wide(x.tensor());
  return wide.back(vector_norm(sub(wide(x.tensor()), wide(other)), p));
}

Tensor cdist(Operand x1, const Tensor& x2, double p) {
  const NamedCall call("cdist", x1.where());
  check_exponent(p, "cdist", x1.where());
  const Operand second(x2, x1.where());
  for (const Operand& x : {x1, second})
    if (x.tensor().dim() < 2)
      fail(Category::bad_dim, "cdist", fmt::format("{} has no rows of vectors", describe(x.tensor())),
           x1.where());
  const auto batch_of = [](Operand x) { return ops::without_last(ops::without_last(shape_of(x))); };
  const Shape batch = broadcast_shapes(batch_of(x1), batch_of(second), "cdist");
  const Tensor a = with_batch(x1, batch), b = with_batch(second, batch);
  return ops::emit<ops::Cdist>({a.get(), b.get()}, {p}, x1.where());
}

Tensor pdist(Operand x, double p) {
  const NamedCall call("pdist", x.where());
  if (x.tensor().dim() != 2)
    fail(Category::bad_dim, "pdist", fmt::format("{} is no matrix", describe(x.tensor())), x.where());
  const Dim n = shape_of(x)[0];
  const Tensor pairs = triu_indices(n.value(), n.value(), 1, {kInt64, x.tensor().device()}, x.where());
  const Tensor places = add(mul(select(pairs, 0, 0), n), select(pairs, 0, 1));
  return index_select(flat(cdist(x, x.tensor(), p), x.where()), 0, places);
}

}  // namespace retrograd
