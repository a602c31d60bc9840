// Determinants against sums over permutations and known values, with their derivatives: cofactors, also of
// singular matrices.
#include "ops/linalg.h"

#include "ops/matmul.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "retrograd/retrograd.h"
#include "tests/ops/matrices.h"

namespace retrograd {
namespace {

using namespace testing;

// The determinant by expansion along the first row.
double expanded(const std::vector<std::vector<double>>& m) {
  if (m.empty()) return 1;
  double sum = 0;
  for (size_t j = 0; j < m.size(); ++j) {
    std::vector<std::vector<double>> minor;
    for (size_t i = 1; i < m.size(); ++i) {
      minor.push_back(m[i]);
      minor.back().erase(minor.back().begin() + static_cast<int64_t>(j));
    }
    sum += (j % 2 ? -1 : 1) * m[0][j] * expanded(minor);
  }
  return sum;
}

std::vector<std::vector<double>> rows_of(const Tensor& x) {
  std::vector<std::vector<double>> rows;
  for (int64_t i = 0; i < x.size(0); ++i) rows.push_back(select(x, 0, i).to_vector());
  return rows;
}

// All cofactors, by expansion.
Tensor cofactors(const Tensor& x) {
  std::vector<double> all;
  const int64_t n = x.size(0);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      auto minor = rows_of(x);
      minor.erase(minor.begin() + i);
      for (auto& row : minor) row.erase(row.begin() + j);
      all.push_back(((i + j) % 2 ? -1 : 1) * expanded(minor));
    }
  return tensor(all, {n, n}, {kFloat64});
}

TEST_CASE("determinants: expansion, sign and logarithm") {
  for (int64_t n : {0, 1, 2, 3, 4, 5, 6}) {
    const Tensor a = input({n, n}, -2, 2, static_cast<int>(n)).detach();
    const double want = expanded(n ? rows_of(a) : std::vector<std::vector<double>>{});
    INFO("n = " << n);
    CHECK(det(a).item<double>() == Approx(want));
    const SlogdetResult r = slogdet(a);
    CHECK(r.sign.item<double>() == (want > 0 ? 1 : -1));
    CHECK(r.logabsdet.item<double>() == Approx(std::log(std::abs(want))).margin(1e-12));
    CHECK((want > 0 ? logdet(a).item<double>() == Approx(std::log(want)).margin(1e-12)
                    : std::isnan(logdet(a).item<double>())));
  }
  const Tensor large = eye(400, 400, {kFloat64}) * 100.0;  // its determinant is beyond float64
  CHECK(slogdet(large).logabsdet.item<double>() == Approx(400 * std::log(100.0)));
  CHECK(det(large).item<double>() == INFINITY);
  const SlogdetResult zero = slogdet(zeros({2, 2}));
  CHECK((zero.sign.item<double>() == 0 && zero.logabsdet.item<double>() == -INFINITY));
}

TEST_CASE("the gradient of a determinant is the matrix of cofactors, also where it is singular") {
  const Tensor zero = zeros({4, 4}, {kFloat64});
  const Tensor base = input({4, 4}, -2, 2, 6).detach();
  const Tensor twice = index_copy(base, 0, tensor({3}, {kInt64}), select(base, 0, 0).view({1, 4}) * 2.0);
  const Tensor zero_row = index_copy(base, 0, tensor({1}, {kInt64}), zeros({1, 4}, {kFloat64}));
  const Tensor outer_product = outer(select(base, 0, 0), select(base, 0, 1));
  for (const Tensor& a : {base, base * 1e-3, twice, turned(twice), zero_row, outer_product, zero}) {
    const Tensor want = cofactors(a);
    CHECK(distance(det_gradient(a), want) <= 1e-12 * (1 + largest(want)));
    CHECK(distance(det_gradient(to(a, kFloat32)), to(want, kFloat32)) <= 1e-5 * (1 + largest(want)));
  }
  CHECK(det_gradient(tensor({0.0}, {kFloat64}).view({1, 1})).item<double>() == 1);
}

TEST_CASE("the second derivative of a determinant, also where it is singular") {
  const Tensor base = input({2, 4, 4}, -2, 2, 6).detach();
  for (int64_t rank = 0; rank <= 4; ++rank) {
    INFO("rank " << rank);
    Tensor low = matmul(narrow(base, 2, 0, rank), narrow(base, 1, 0, rank));
    gradcheck([](const Tensors& x) { return det(x[0]); }, {low.requires_grad_()});
  }
}

TEST_CASE("the gradient of slogdet where the matrix is singular is no error") {
  const Tensor a = ones({2, 2}).requires_grad_();
  sum(slogdet(a).logabsdet).backward();
  for (double g : a.grad().to_vector()) CHECK_FALSE(std::isfinite(g));
}

}  // namespace
}  // namespace retrograd
