// Decompositions, functions of matrices and products beyond matmul. Vectors are determined up to their sign, so rows
// of eigh, svd and qr give what does not depend on it; a symmetric operand is made by the row.
#include <cmath>

#include "ops/arithmetic.h"
#include "ops/factorizations.h"
#include "ops/join.h"
#include "ops/linalg.h"
#include "ops/matmul.h"
#include "ops/matrix_functions.h"
#include "ops/products.h"
#include "ops/rearrange.h"
#include "ops/spectral.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;
namespace linalg = rg::linalg;

namespace {

Tensor turned(const Tensor& x) { return rg::transpose(x, -2, -1); }

/// The same leaf with 3, 4, 5, ... added on the diagonals: of full rank, with distinct values. It keeps its strides.
Tensor spread(const Tensor& leaf) {
  const Tensor t = leaf.detach();
  const int64_t m = t.size(-2), n = t.size(-1), k = std::min(m, n);
  const Tensor steps = rg::reshape(rg::arange(3, 3 + m, 1, {{t.dtype()}}), {m, 1});
  if (k > 0) t.add_(rg::eye(m, n, {t.dtype()}) * steps);
  return leaf;
}

Tensor symmetric(const Tensor& x) { return x + turned(x); }

std::vector<Tensors> square_cases() {
  return {{spread(real({1, 1}))},       {spread(real({3, 3}))}, {spread(transposed({2, 2, 2}))},
          {spread(strided({2, 3, 3}))}, {real({0, 0})},         {real({0, 2, 2})}};
}

std::vector<Tensors> any_cases() {
  std::vector<Tensors> cases = square_cases();
  for (Tensors& more : std::vector<Tensors>{{spread(real({4, 2}))},
                                            {spread(real({2, 4}))},
                                            {spread(transposed({2, 3, 1}))},
                                            {spread(strided({2, 2, 3}))},
                                            {real({2, 0, 3})},
                                            {real({3, 0})}})
    cases.push_back(more);
  return cases;
}

void add_symmetric(Rows& rows) {
  for (const char* uplo : {"L", "U"}) {
    rows.push_back({std::string("eigh, ") + uplo,
                    [uplo](const Tensors& x) {
                      const linalg::EighResult r = linalg::eigh(symmetric(x[0]), uplo);
                      return Tensors{r.eigenvalues, r.eigenvectors * r.eigenvectors};
                    },
                    square_cases()});
    rows.push_back(row(
        std::string("eigvalsh, ") + uplo,
        [uplo](const Tensors& x) { return linalg::eigvalsh(symmetric(x[0]), uplo); }, square_cases()));
  }
  rows.push_back(row(
      "pinv of a symmetric matrix",
      [](const Tensors& x) { return linalg::pinv(symmetric(x[0]), {}, {}, true); }, square_cases()));
}

void add_singular_values(Rows& rows) {
  rows.push_back({"svd",
                  [](const Tensors& x) {
                    const linalg::SvdResult r = linalg::svd(x[0], false);
                    return Tensors{r.U * r.U, r.S, r.Vh * r.Vh, rg::matmul(r.U, r.Vh)};
                  },
                  any_cases()});
  rows.push_back({"svd, full_matrices",
                  [](const Tensors& x) {
                    const linalg::SvdResult r = linalg::svd(x[0]);
                    const int64_t k = r.S.size(-1), m = r.U.size(-1), n = r.Vh.size(-1);
                    const Tensor u = rg::narrow(r.U, -1, k, m - k), v = rg::narrow(r.Vh, -2, k, n - k);
                    return Tensors{rg::matmul(u, turned(u)), rg::matmul(turned(v), v),
                                   rg::square(rg::narrow(r.U, -1, 0, k)),
                                   rg::square(rg::narrow(r.Vh, -2, 0, k))};
                  },
                  any_cases()});
  rows.push_back(row(
      "svdvals", [](const Tensors& x) { return linalg::svdvals(x[0]); }, any_cases()));
  rows.push_back(row(
      "pinv", [](const Tensors& x) { return linalg::pinv(x[0]); }, any_cases()));
  for (const double ord : {2.0, -2.0, 1.0, -1.0, HUGE_VAL, -HUGE_VAL})
    rows.push_back(row("matrix_norm " + std::to_string(ord),
                       [ord](const Tensors& x) {
                         return linalg::matrix_norm(x[0], ord, {-1, 0}, true);
                       },
                       {{spread(real({3, 3}))}, {real({3, 2})}, {real({0, 3})}, {transposed({2, 2, 3})}}));
  for (const char* ord : {"fro", "nuc"})
    rows.push_back(row(std::string("matrix_norm ") + ord,
                       [ord](const Tensors& x) { return linalg::matrix_norm(x[0], ord); },
                       {{spread(real({3, 3}))}, {real({3, 2})}, {transposed({2, 2, 3})}}));
}

void add_factors(Rows& rows) {
  for (const char* mode : {"reduced", "r"})
    rows.push_back({std::string("qr, ") + mode,
                    [mode](const Tensors& x) {
                      const linalg::QrResult r = linalg::qr(x[0], mode);
                      return Tensors{r.Q * r.Q, r.R * r.R};
                    },
                    any_cases()});
  rows.push_back(row(
      "lu_factor", [](const Tensors& x) { return linalg::lu_factor(x[0]).LU; }, any_cases()));
  for (const int form : {0, 1, 2, 3}) {
    const bool left = form & 1, adjoint = form & 2;
    const Tensor pivots = rg::tensor({2, 3, 3}, {3}, {rg::kInt32});
    rows.push_back(
        row(std::string("lu_solve") + (left ? "" : ", from the right") + (adjoint ? ", adjoint" : ""),
            [=](const Tensors& x) { return linalg::lu_solve(x[0], pivots, x[1], left, adjoint); },
            {{spread(real({3, 3})), left ? real({3, 2}) : real({2, 3})},
             {spread(transposed({3, 3})), strided({2, 3, 3})},
             {fixed(spread(real({3, 3}))), real({3, 3})}}));
  }
  for (const bool upper : {false, true}) {
    rows.push_back(
        row(upper ? "cholesky_solve, upper" : "cholesky_solve",
            [upper](const Tensors& x) { return rg::cholesky_solve(x[0], x[1], upper); },
            {{real({3, 2}), spread(real({3, 3}))}, {strided({2, 2, 1}), spread(transposed({2, 2}))}}));
    rows.push_back(row(
        upper ? "cholesky_inverse, upper" : "cholesky_inverse",
        [upper](const Tensors& x) { return rg::cholesky_inverse(x[0], upper); }, square_cases()));
  }
}

void add_functions(Rows& rows) {
  rows.push_back(row("matrix_exp", [](const Tensors& x) { return rg::matrix_exp(x[0]); },
                     {{real({1, 1})}, {real({3, 3})}, {transposed({2, 2, 2})}, {real({0, 0})}}));
  rows.push_back(row("lstsq", [](const Tensors& x) { return linalg::lstsq(x[0], x[1]); },
                     {{spread(real({4, 2})), real({4, 3})},
                      {spread(real({2, 4})), real({2, 3})},
                      {spread(transposed({3, 3})), real({3})},
                      {spread(strided({2, 3, 2})), real({3, 1})},
                      {fixed(spread(real({4, 2}))), real({4, 3})},
                      {spread(real({4, 2})), fixed(real({4, 3}))},
                      {real({0, 2}), real({0, 2})}}));
}

void add_products(Rows& rows) {
  const auto add = [&](std::string name, std::function<Tensor(const Tensors&)> f,
                       std::vector<Tensors> cases) {
    rows.push_back(row(std::move(name), std::move(f), std::move(cases)));
    rows.back().dtypes = {rg::kFloat32, rg::kFloat16, rg::kBFloat16};
  };
  add("cross", [](const Tensors& x) { return linalg::cross(x[0], x[1]); },
      {{real({3}), real({3})},
       {real({2, 3}), transposed({1, 3})},
       {strided({2, 2, 3}), expanded({2, 2, 3})}});
  add("cross along dim 0", [](const Tensors& x) { return linalg::cross(x[0], x[1], 0); },
      {{real({3, 2}), transposed({3, 2})}, {real({3, 0}), real({3, 1})}});
  add("vecdot", [](const Tensors& x) { return linalg::vecdot(x[0], x[1]); },
      {{real({3}), real({3})},
       {real({2, 3}), transposed({3, 1, 3})},
       {real({}), real({})},
       {real({2, 0}), real({2, 0})}});
  add("inner", [](const Tensors& x) { return rg::inner(x[0], x[1]); },
      {{real({3}), real({3})},
       {real({2, 3}), transposed({4, 3})},
       {real({}), real({2, 3})},
       {real({2, 0}), real({0})}});
  add("addbmm", [](const Tensors& x) { return rg::addbmm(x[0], x[1], x[2], 0.5, -2.0); },
      {{real({2, 4}), real({3, 2, 3}), transposed({3, 3, 4})},
       {real({4}), real({0, 2, 3}), real({0, 3, 4})}});
  add("addmv", [](const Tensors& x) { return rg::addmv(x[0], x[1], x[2], 0.5, -2.0); },
      {{real({2}), real({2, 3}), real({3})},
       {real({}), transposed({2, 3}), strided({3})},
       {real({2}), real({2, 0}), real({0})}});
  add("addr", [](const Tensors& x) { return rg::addr(x[0], x[1], x[2], 0.5, -2.0); },
      {{real({2, 3}), real({2}), real({3})}, {real({3}), strided({2}), real({3})}});
  add("multi_dot", [](const Tensors& x) { return linalg::multi_dot(x); },
      {{real({2, 3}), real({3, 2})},
       {real({2, 4}), transposed({4, 1}), real({1, 3})},
       {real({3}), real({3, 2}), strided({2, 4}), real({4})}});
}

}  // namespace

Rows decomposition_rows() {
  Rows rows;
  add_symmetric(rows);
  add_singular_values(rows);
  add_factors(rows);
  add_functions(rows);
  for (Row& r : rows) r.dtypes = {rg::kFloat32};
  add_products(rows);
  return rows;
}

}  // namespace derivatives
