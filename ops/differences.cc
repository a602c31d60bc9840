// See ops/differences.h.
#include "ops/differences.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/join.h"
#include "ops/reduce.h"
#include "ops/scan.h"
#include "ops/shape_ops.h"
#include "ops/views.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace {

/// The entries of a dim but the last, and but the first: neighbours. Of none, none.
struct Neighbours {
  Tensor left, right;
  Neighbours(const Tensor& x, int64_t dim) {
    const Dim n = shape_of(x)[static_cast<int>(dim)];
    const Dim pairs = n == Dim(0) ? n : n - 1;
    left = narrow(x, dim, 0, pairs);
    right = narrow(x, dim, n - pairs, pairs);
  }
};

Tensor difference(const Tensor& x, int64_t dim) {
  const Neighbours n(x, dim);
  return x.dtype() == kBool ? ne(n.right, n.left) : sub(n.right, n.left);
}

int differenced_dim(Operand x, int64_t dim, std::string_view op) {
  if (x.tensor().dim() == 0)
    fail(Category::bad_dim, op, "a tensor without dims has no neighbours", x.where());
  return wrap_dim(dim, x.tensor().impl().rank(), op);
}

}  // namespace

Tensor diff(Operand x, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  const NamedCall call("diff", x.where());
  const int along = differenced_dim(x, dim, "diff");
  if (n < 0) fail(Category::bad_argument, "diff", fmt::format("n is {}", n), x.where());
  if (n == 0) return x.tensor();
  Tensors parts;
  for (const Tensor* part : {&prepend, &x.tensor(), &append})
    if (part->defined()) parts.push_back(*part);
  for (const Tensor& part : parts)
    if (part.dim() != x.tensor().dim())
      fail(Category::bad_dim, "diff",
           fmt::format("{} cannot be joined to {}", describe(part), describe(x.tensor())), x.where());
  Tensor result = parts.size() == 1 ? x.tensor() : cat(parts, along, x.where());
  for (int64_t i = 0; i < n && !(shape_of(result)[along] == Dim(0)); ++i) result = difference(result, along);
  return result;
}

namespace {

/// An integral of y: its dim, and what is computed in and rounded to.
struct Integral {
  int dim;
  Tensor values;
  ScalarType dtype;

  Integral(Operand y, const Tensor& x, int64_t along, std::string_view op)
      : dim(differenced_dim(y, along, op)),
        values(ops::Widened(y.tensor())(y.tensor())),
        dtype(x.defined() ? promote_types(y.tensor().dtype(), x.dtype()) : y.tensor().dtype()) {
    for (const Tensor* t : {&y.tensor(), &x})
      if (t->defined() && t->dtype() == kBool)
        fail(Category::dtype_mismatch, op, fmt::format("{} is bool", describe(*t)), y.where());
  }
  Tensor rounded(const Tensor& result) const { return is_floating(dtype) ? to(result, dtype) : result; }
  Tensor sums_of_neighbours() const {
    const Neighbours n(values, dim);
    return add(n.left, n.right);
  }
};

/// Twice the areas between points, and their dim: there may be more dims than y has.
struct Areas {
  Tensor doubled;
  int64_t dim;

  Areas(const Integral& y, const Tensor& x, std::string_view op, SourceLocation where) {
    const int rank = y.values.impl().rank();
    Tensor points = ops::Widened(x)(x);
    if (x.dim() == 1) {
      Shape shape;
      for (int d = 0; d < rank; ++d) shape.push_back(d == y.dim ? shape_of(x)[0] : Dim(1));
      points = reshape_to(points, shape);
    }
    const int at = points.impl().rank() - rank + y.dim;  // broadcasting counts dims from the last
    if (at < 0 || !(shape_of(points)[at] == shape_of(y.values)[y.dim]))
      fail(Category::shape_mismatch, op,
           fmt::format("{} has no points for {}", describe(x), describe(y.values)), where);
    doubled = mul(difference(points, at), y.sums_of_neighbours());
    dim = doubled.dim() - rank + y.dim;
  }
};

}  // namespace

Tensor trapezoid(Operand y, Scalar dx, int64_t dim) {
  const NamedCall call("trapezoid", y.where());
  const Integral integral(y, {}, dim, "trapezoid");
  const Tensor& v = integral.values;
  const Dim n = shape_of(v)[integral.dim];
  Tensor total = sum(v, integral.dim);
  if (!(n == Dim(0)))
    total = sub(total, mul(add(select(v, integral.dim, 0), select(v, integral.dim, n - 1)), 0.5));
  return integral.rounded(mul(total, dx));
}

Tensor trapezoid(Operand y, const Tensor& x, int64_t dim) {
  const NamedCall call("trapezoid", y.where());
  const Integral integral(y, x, dim, "trapezoid");
  const Areas areas(integral, x, "trapezoid", y.where());
  return integral.rounded(mul(sum(areas.doubled, areas.dim), 0.5));
}

Tensor cumulative_trapezoid(Operand y, Scalar dx, int64_t dim) {
  const NamedCall call("cumulative_trapezoid", y.where());
  const Integral integral(y, {}, dim, "cumulative_trapezoid");
  return integral.rounded(mul(cumsum(integral.sums_of_neighbours(), integral.dim), dx * Scalar(0.5)));
}

Tensor cumulative_trapezoid(Operand y, const Tensor& x, int64_t dim) {
  const NamedCall call("cumulative_trapezoid", y.where());
  const Integral integral(y, x, dim, "cumulative_trapezoid");
  const Areas areas(integral, x, "cumulative_trapezoid", y.where());
  return integral.rounded(mul(cumsum(areas.doubled, areas.dim), 0.5));
}

}  // namespace retrograd
