// Type rule, derivative and public functions of ops/products.h.
#include "ops/products.h"

#include <functional>
#include <vector>

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/contraction.h"
#include "ops/family_parts.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace ops {

void Cross::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &a = *call.operands[0], &b = *call.operands[1];
  if (a.dtype() != b.dtype()) fail_call(call, Category::dtype_mismatch, "operands have different dtypes");
  if (a.dtype() == kBool || is_float8(a.dtype()))
    fail_call(call, Category::dtype_mismatch, "products of this dtype are not supported");
  check_devices(call);
  const int dim = checked_dim(call, call.attrs_as<Attrs>().dim, a.rank());
  if (!(a.shape() == b.shape())) fail_call(call, Category::shape_mismatch, "operands have different shapes");
  if (!(a.shape()[dim] == 3))
    fail_call(call, Category::shape_mismatch, "the vectors must have three entries");
  set_like(a, a.shape(), *outputs[0]);
}

Tensor Cross::transpose(RuleContext& c, int i, const Tensor& g) {
  const Tensor other = c.in(1 - i).tensor();
  const Tensor &a = i == 0 ? other : g, &b = i == 0 ? g : other;
  return emit<Cross>({a.get(), b.get()}, c.attrs<Attrs>(), c.where());
}

}  // namespace ops

namespace {

void check_rank(const Tensor& x, int rank, std::string_view op, std::string_view what, SourceLocation where) {
  if (x.dim() != rank) fail(Category::bad_dim, op, fmt::format("{} is not a {}", describe(x), what), where);
}

void check_dtypes(const Tensor& a, const Tensor& b, std::string_view op, SourceLocation where) {
  if (a.dtype() != b.dtype())
    fail(Category::dtype_mismatch, op, fmt::format("dtypes of {} and {} differ", describe(a), describe(b)),
         where);
}

void check_equal(Dim a, Dim b, const Tensor& x, const Tensor& y, std::string_view op, SourceLocation where) {
  if (!(a == b))
    fail(Category::shape_mismatch, op, fmt::format("{} and {} do not fit together", describe(x), describe(y)),
         where);
}

}  // namespace

// One product: the batch is a part of the inner dim.
Tensor addbmm(Operand input, const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha) {
  const NamedCall call("addbmm", input.where());
  const SourceLocation where = input.where();
  for (const Tensor& x : {batch1, batch2}) check_rank(x, 3, "addbmm", "batch of matrices", where);
  const Shape &a = batch1.impl().shape(), &b = batch2.impl().shape();
  check_equal(a[0], b[0], batch1, batch2, "addbmm", where);
  check_equal(a[2], b[1], batch1, batch2, "addbmm", where);
  const Tensor turned = permute(Operand(batch1, where), {1, 0, 2});
  const Tensor left = reshape_to(Operand(turned, where), {a[1], a[0] * a[2]}),
               right = reshape_to(Operand(batch2, where), {b[0] * b[1], b[2]});
  return addmm(input, left, right, beta, alpha);
}

Tensor addmv(Operand input, const Tensor& mat, const Tensor& vec, Scalar beta, Scalar alpha) {
  const NamedCall call("addmv", input.where());
  const SourceLocation where = input.where();
  check_rank(mat, 2, "addmv", "matrix", where);
  check_rank(vec, 1, "addmv", "vector", where);
  const Tensor start = expand_to(input, {mat.impl().shape()[0]});
  const Tensor column = unsqueeze(Operand(start, where), -1);
  return squeeze(
      Operand(addmm(Operand(column, where), mat, unsqueeze(Operand(vec, where), -1), beta, alpha), where),
      {-1});
}

Tensor addr(Operand input, const Tensor& vec1, const Tensor& vec2, Scalar beta, Scalar alpha) {
  const NamedCall call("addr", input.where());
  const SourceLocation where = input.where();
  for (const Tensor& x : {vec1, vec2}) check_rank(x, 1, "addr", "vector", where);
  const ScalarType dtype = promote_types(input.tensor().dtype(), promote_types(vec1.dtype(), vec2.dtype()));
  const auto cast = [&](const Tensor& x) { return to(Operand(x, where), dtype); };
  const Tensor column = unsqueeze(Operand(cast(vec1), where), 1),
               row = unsqueeze(Operand(cast(vec2), where), 0);
  return addmm(Operand(cast(input.tensor()), where), column, row, beta, alpha);
}

Tensor inner(Operand input, Operand other) {
  const NamedCall call("inner", input.where());
  const Tensor &a = input.tensor(), &b = other.tensor();
  if (a.dim() == 0 || b.dim() == 0) return mul(input, other);
  check_dtypes(a, b, "inner", input.where());
  check_equal(a.impl().shape().back(), b.impl().shape().back(), a, b, "inner", input.where());
  return tensordot(input, b, IntList(a.dim() - 1), IntList(b.dim() - 1));
}

namespace linalg {

Tensor cross(Operand input, Operand other, int64_t dim) {
  const NamedCall call("cross", input.where());
  const SourceLocation where = input.where();
  const Tensor &a = input.tensor(), &b = other.tensor();
  if (a.dim() != b.dim())
    fail(Category::bad_dim, "cross",
         fmt::format("{} and {} have different numbers of dims", describe(a), describe(b)), where);
  if (a.dim() == 0) fail(Category::bad_dim, "cross", "operands need at least one dim", where);
  const int64_t at = wrap_dim(dim, static_cast<int>(a.dim()), "cross");
  check_equal(a.impl().shape()[static_cast<int>(at)], b.impl().shape()[static_cast<int>(at)], a, b, "cross",
              where);
  const Shape shape = broadcast_shapes(a.impl().shape(), b.impl().shape(), "cross", where);
  const Tensor left = expand_to(input, shape), right = expand_to(other, shape);
  return ops::emit<ops::Cross>({left.get(), right.get()}, {at}, where);
}

Tensor vecdot(Operand x, Operand y, int64_t dim) {
  const NamedCall call("vecdot", x.where());
  const SourceLocation where = x.where();
  const ops::AutocastFunction cast(CastPolicy::promote, {&x.tensor(), &y.tensor()});
  const Tensor a = cast(x), b = cast(y);
  check_dtypes(a, b, "vecdot", where);
  if (!is_floating(a.dtype()))
    fail(Category::dtype_mismatch, "vecdot", fmt::format("{} is not floating", describe(a)), where);
  const Shape shape = broadcast_shapes(a.impl().shape(), b.impl().shape(), "vecdot", where);
  const int at = static_cast<int>(wrap_dim(dim, std::max(shape.rank(), 1), "vecdot"));
  const auto size_of = [&](const Tensor& t) {
    const int own = at - (shape.rank() - static_cast<int>(t.dim()));
    return own < 0 || t.dim() == 0 ? Dim(1) : t.impl().shape()[own];
  };
  check_equal(size_of(a), size_of(b), a, b, "vecdot", where);
  const ops::Widened wide(a);
  return wide.back(sum(Operand(mul(wide(a), wide(b)), where), shape.rank() == 0 ? IntList() : IntList(at)));
}

namespace {

// Where to split the product of factors i to j: the last product's number of inner size, by the costs of all shorter
// ones (Cormen et al., Introduction to Algorithms, matrix-chain multiplication).
std::vector<std::vector<size_t>> best_splits(const std::vector<Dim>& sizes) {
  const size_t n = sizes.size() - 1;
  std::vector<std::vector<Dim>> cost(n, std::vector<Dim>(n, Dim(0)));
  std::vector<std::vector<size_t>> split(n, std::vector<size_t>(n, 0));
  for (size_t length = 2; length <= n; ++length)
    for (size_t i = 0, j = length - 1; j < n; ++i, ++j)
      for (size_t k = i; k < j; ++k) {
        const Dim c = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
        if (k == i || c < cost[i][j]) cost[i][j] = c, split[i][j] = k;
      }
  return split;
}

// The factors as matrices; of the first and the last, vectors become a row and a column.
Tensors as_matrices(const Tensors& tensors, SourceLocation where) {
  Tensors factors = tensors;
  if (factors.front().dim() == 1) factors.front() = unsqueeze(Operand(factors.front(), where), 0);
  if (factors.back().dim() == 1) factors.back() = unsqueeze(Operand(factors.back(), where), 1);
  for (size_t i = 0; i < factors.size(); ++i) {
    check_rank(factors[i], 2, "multi_dot", "matrix", where);
    if (i == 0) continue;
    check_dtypes(factors[i - 1], factors[i], "multi_dot", where);
    check_equal(factors[i - 1].impl().shape()[1], factors[i].impl().shape()[0], tensors[i - 1], tensors[i],
                "multi_dot", where);
  }
  return factors;
}

}  // namespace

Tensor multi_dot(const Tensors& tensors, SourceLocation where) {
  const NamedCall call("multi_dot", where);
  if (tensors.size() < 2) fail(Category::bad_argument, "multi_dot", "at least two tensors are needed", where);
  const Tensors factors = as_matrices(tensors, where);
  std::vector<Dim> sizes = {factors[0].impl().shape()[0]};
  for (const Tensor& x : factors) sizes.push_back(x.impl().shape()[1]);
  const auto split = best_splits(sizes);
  const std::function<Tensor(size_t, size_t)> product = [&](size_t i, size_t j) {
    if (i == j) return factors[i];
    const size_t k = split[i][j];
    return ops::product(product(i, k), product(k + 1, j), where);
  };
  Tensor result = product(0, factors.size() - 1);
  if (tensors.back().dim() == 1) result = squeeze(Operand(result, where), {1});
  if (tensors.front().dim() == 1) result = squeeze(Operand(result, where), {0});
  return result;
}

}  // namespace linalg
}  // namespace retrograd
