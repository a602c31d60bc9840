// Linear algebra: batches, vectors and matrices on the right-hand side, systems from the left and the right,
// each triangle, no rows and one row, and determinants of matrices that are singular.
#include "ops/linalg.h"

#include "ops/arithmetic.h"
#include "ops/rearrange.h"
#include "ops/shape_ops.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

/// The same leaf with 3 added on the diagonals: far from singular. It keeps its strides.
Tensor regular(const Tensor& leaf) {
  const Tensor t = leaf.detach();
  t.add_(3 * rg::eye(t.size(-1), {}, {t.dtype()}));
  return leaf;
}

/// One matrix for each entry of a batch, in the same memory.
Tensor shared(const Tensor& matrix, int64_t batch) {
  return rg::expand_to(matrix.detach(), {batch, matrix.size(0), matrix.size(1)}).detach().requires_grad_();
}

std::vector<Tensors> regular_cases() {
  return {{regular(real({1, 1}))},
          {regular(real({3, 3}))},
          {regular(transposed({4, 4}))},
          {regular(transposed({2, 3, 2, 2}))},
          {shared(regular(real({2, 2})), 2)},
          {regular(strided({2, 3, 3}))},
          {real({0, 0})},
          {real({0, 2, 2})},
          {real({2, 0, 0})}};
}

/// Matrices of rank n - 1, n - 2 and zero.
std::vector<Tensors> singular_cases() {
  const auto leaf = [](std::vector<double> values, const Shape& shape) {
    return rg::tensor(values, shape, {rg::kFloat64}).requires_grad_();
  };
  return {{leaf({1, 2, -1, 0.5, 1, 3, 1.5, 3, 2}, {3, 3})},
          {leaf({1, -2, 0.5, 2, -4, 1, -1, 2, -0.5}, {3, 3})},
          {leaf({0, 0, 0, 0}, {2, 2})},
          {leaf({0}, {1, 1})},
          {leaf({1, 0, 0, 0, 0, 0, 2, 1, 2, 4, 1, 2}, {3, 2, 2})}};
}

void add_matrices(Rows& rows) {
  rows.push_back(row(
      "inverse", [](const Tensors& x) { return rg::inverse(x[0]); }, regular_cases()));
  // cholesky() reads one triangle, and its gradient is that of a symmetric operand.
  for (const bool upper : {false, true})
    rows.push_back(row(
        upper ? "cholesky, upper" : "cholesky",
        [upper](const Tensors& x) { return rg::cholesky(x[0] + rg::transpose(x[0], -2, -1), upper); },
        regular_cases()));
  // The power 0 is a constant.
  for (const int n : {-2, -1, 1, 2, 3, 5})
    rows.push_back(row("matrix_power " + std::to_string(n),
                       [n](const Tensors& x) { return rg::matrix_power(x[0], n); },
                       {{regular(real({2, 2}, {-1, 0}))}, {regular(transposed({2, 3, 3}))}, {real({0, 0})}}));
  rows.push_back(row("trace", [](const Tensors& x) { return rg::trace(x[0]); },
                     {{real({3, 3})}, {transposed({2, 4})}, {strided({3, 2})}, {real({0, 2})}}));
}

void add_determinants(Rows& rows) {
  const auto det = [](const Tensors& x) { return rg::det(x[0]); };
  rows.push_back(row("det", det, regular_cases()));
  rows.back().eps = 0x1p-16;  // linear in each element, so differences are exact except for rounding
  rows.push_back(row("det of matrices near to singular", det, {{real({2, 3, 3})}, {transposed({4, 4})}}));
  rows.push_back(row("det of singular matrices", det, singular_cases()));
  // Where A is invertible, derivatives of third order: those of the cofactors' derivative.
  rows.push_back(row("the derivative of cofactors in a direction",
                     [](const Tensors& x) {
                       return rg::ops::emit<rg::ops::CofactorDerivative>({x[0].get(), x[1].get()}, {}, {});
                     },
                     {{regular(real({3, 3})), real({3, 3})},
                      {regular(transposed({2, 2, 2})), strided({2, 2, 2})},
                      {regular(real({1, 1})), real({1, 1})},
                      {real({0, 2, 2}), real({0, 2, 2})}}));
  rows.push_back({"slogdet",
                  [](const Tensors& x) {
                    const rg::SlogdetResult result = rg::slogdet(x[0]);
                    return Tensors{result.sign, result.logabsdet};
                  },
                  regular_cases()});
  rows.push_back(row("logdet", [](const Tensors& x) { return rg::logdet(x[0]); },
                     {{regular(real({3, 3}))}, {regular(transposed({2, 2, 2}))}}));
}

void add_systems(Rows& rows) {
  rows.push_back(row("solve", [](const Tensors& x) { return rg::solve(x[0], x[1]); },
                     {{regular(real({3, 3})), real({3})},
                      {regular(transposed({3, 3})), transposed({3, 2})},
                      {regular(real({2, 2, 2})), strided({2, 2})},
                      {regular(real({2, 1, 2, 2})), real({3, 2, 1})},
                      {regular(strided({2, 2, 2})), expanded({2, 2, 3})},
                      {shared(regular(real({2, 2})), 2), real({2, 2})},
                      {regular(real({2, 2})), fixed(real({2, 2}))},
                      {fixed(regular(real({2, 2}))), real({2, 2})},
                      {real({0, 0}), real({0, 2})},
                      {real({2, 2}), real({2, 0})},
                      {real({0, 2, 2}), real({0, 2, 1})}}));
  rows.push_back(row("solve from the right", [](const Tensors& x) { return rg::solve(x[0], x[1], false); },
                     {{regular(transposed({3, 3})), transposed({2, 3})},
                      {regular(real({2, 1, 2, 2})), real({3, 1, 2})},
                      {real({2, 2}), real({0, 2})}}));
  rows.push_back(row("solve of a matrix with itself",
                     [](const Tensors& x) { return rg::solve(x[0], rg::transpose(x[0], 0, 1)); },
                     {{regular(real({3, 3}))}}));
}

void add_triangular_systems(Rows& rows) {
  for (const int form : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const bool upper = form & 1, left = form & 2, unitriangular = form & 4;
    // From the right the last two sizes of B are exchanged.
    const auto B = [left](Shape shape) {
      if (!left) std::swap(shape[shape.rank() - 2], shape[shape.rank() - 1]);
      return shape;
    };
    rows.push_back(
        row(std::string("solve_triangular") + (upper ? ", upper" : "") + (left ? "" : ", from the right") +
                (unitriangular ? ", unitriangular" : ""),
            [=](const Tensors& x) { return rg::solve_triangular(x[0], x[1], upper, left, unitriangular); },
            {{regular(real({3, 3})), real(B({3, 2}))},
             {regular(transposed({2, 2, 2})), transposed(B({2, 2, 1}))},
             {regular(strided({2, 1, 2, 2})), strided(B({3, 2, 2}))},
             {shared(regular(real({2, 2})), 2), expanded(B({2, 2, 3}))},
             {regular(real({1, 1})), real(B({1, 2}))},
             {fixed(regular(real({2, 2}))), real(B({2, 1}))},
             {regular(real({2, 2})), fixed(real(B({2, 1})))},
             {real({0, 0}), real(B({0, 2}))},
             {real({0, 2, 2}), real(B({0, 2, 1}))}}));
  }
}

}  // namespace

Rows linalg_rows() {
  Rows rows;
  add_matrices(rows);
  add_determinants(rows);
  add_systems(rows);
  add_triangular_systems(rows);
  for (Row& r : rows) r.dtypes = {rg::kFloat32};
  return rows;
}

}  // namespace derivatives
