// Statistics, cumulative extremes, distances, differences, counts, searches and distinct elements: shapes, dtypes, what
// 16 bits and large numbers lose, errors. PyTorch's values are in tests/conformance, its edges in tests/ops/edges.
#include "ops/statistics.h"

#include <cmath>

#include "ops/counts.h"
#include "ops/cumulative.h"
#include "ops/differences.h"
#include "ops/distances.h"
#include "ops/search.h"
#include "ops/unique.h"
#include "ops/views.h"
#include "tests/errors.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::input;
using Values = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("sums and means without NaN") {
  const Tensor x = tensor({1, kNan, 3, kNan, kNan, kNan}, {2, 3}, {kFloat32});
  CHECK(nansum(x, 1).to_vector() == Values{4, 0});
  CHECK(nanmean(x, 1).to_vector()[0] == 2);
  CHECK(std::isnan(nanmean(x, 1).to_vector()[1]));
  CHECK(nansum(x, {}, false, kFloat64).dtype() == kFloat64);
  CHECK(nansum(tensor({1, 2}, {kInt32})).dtype() == kInt64);
  CHECK(nanmean(full({4}, 60000, {kFloat16})).item<double>() == 59998 + 2);
  CHECK(category_of([] { nanmean(tensor({1, 2}, {kInt64})); }) == Category::dtype_mismatch);
}

TEST_CASE("a variance with its mean, extremes together") {
  const Tensor x = input({3, 4});
  const auto [variance, mean_of] = var_mean(x, 1, 0, true);
  CHECK(variance.to_vector() == var(x, 1, 0, true).to_vector());
  CHECK(mean_of.to_vector() == mean(x, 1, true).to_vector());
  const auto [least, most] = aminmax(tensor({3, 1, 2}, {kInt64}));
  CHECK(least.item<int64_t>() == 1);
  CHECK(most.item<int64_t>() == 3);
}

TEST_CASE("cumulative extremes give the last place of ties") {
  const Tensor x = tensor({1, 3, 3, 2, 3, 1}, {kInt64});
  const auto [most, places] = cummax(x, 0);
  CHECK(most.to_vector() == Values{1, 3, 3, 3, 3, 3});
  CHECK(places.to_vector() == Values{0, 1, 2, 2, 4, 4});
  CHECK(cummin(x, -1).indices.to_vector() == Values{0, 0, 0, 0, 0, 5});
  const Tensor columns = tensor({1, 4, 3, 2, 5, 0}, {3, 2}, {kBFloat16});
  CHECK(cummax(columns, 0).values.to_vector() == Values{1, 4, 3, 4, 5, 4});
  CHECK(cummax(scalar_tensor(2.0), 0).indices.sizes().empty());
  CHECK(cummax(zeros({2, 0}), 1).values.sizes() == IntArray{2, 0});
  CHECK(category_of([&] { cummax(x, 1); }) == Category::bad_dim);
}

TEST_CASE("logcumsumexp of large numbers keeps its digits, and so does its gradient") {
  const Tensor x = tensor({30000, 30000, 29999}, {kFloat32}).requires_grad_();
  const Tensor y = logcumsumexp(x, 0);
  CHECK(y.to_vector()[0] == 30000);
  CHECK(std::abs(y.to_vector()[1] - 30000.6931) < 2e-3);
  const std::vector<double> g = autograd::grad({y.select(0, 2)}, {x})[0].to_vector();
  const double total = 2 + std::exp(-1);
  CHECK(std::abs(g[0] - 1 / total) < 1e-6);
  CHECK(std::abs(g[2] - std::exp(-1) / total) < 1e-6);
  CHECK(category_of([] { logcumsumexp(tensor({1}, {kInt64}), 0); }) == Category::dtype_mismatch);
}

TEST_CASE("distances: batches that broadcast, extreme sizes, gradients at 0") {
  const Tensor a = input({2, 1, 3, 4}), b = input({5, 2, 4});
  CHECK(cdist(a, b).sizes() == IntArray{2, 5, 3, 2});
  CHECK(cdist(zeros({3, 0}), zeros({2, 0})).to_vector() == Values(6, 0));
  const Tensor far = tensor({1e200, -1e200}, {1, 2}, {kFloat64}),
               near = tensor({3e-200, 4e-200}, {1, 2}, {kFloat64});
  const Tensor zero = zeros({1, 2}, {kFloat64});
  CHECK(std::abs(cdist(far, zero).item<double>() / (std::sqrt(2.0) * 1e200) - 1) < 1e-14);
  CHECK(std::abs(cdist(near, zero).item<double>() / 5e-200 - 1) < 1e-14);
  CHECK(cdist(near, zero, 0).item<double>() == 2);
  const Tensor same = full({1, 3}, 2.0, {kFloat32}).requires_grad_();
  CHECK(autograd::grad({sum(cdist(same, same.detach()))}, {same})[0].to_vector() == Values{0, 0, 0});
  const Tensor close = tensor({4096, 4096.0009765625}, {2, 1}, {kFloat32});
  CHECK(pdist(close).item<double>() == 0.0009765625);
  CHECK(pdist(input({4, 2})).sizes() == IntArray{6});
  CHECK(pdist(zeros({1, 2})).sizes() == IntArray{0});
}

TEST_CASE("errors of distances") {
  const Tensor x = input({2, 3});
  CHECK(category_of([&] { cdist(x, input({2, 4})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { cdist(x, input({3})); }) == Category::bad_dim);
  CHECK(category_of([&] { cdist(x, x, -1); }) == Category::bad_argument);
  CHECK(category_of([&] { cdist(x, to(x, kFloat32)); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { pdist(input({3})); }) == Category::bad_dim);
  CHECK(category_of([&] { renorm(x, 0, 0, 1); }) == Category::bad_argument);
  CHECK(category_of([&] { renorm(x, 2, 0, -1); }) == Category::bad_argument);
  CHECK(category_of([&] { renorm(input({3}), 2, 0, 1); }) == Category::bad_dim);
}

TEST_CASE("differences and trapezoids") {
  const Tensor x = tensor({1, 4, 9, 16}, {kInt64});
  CHECK(diff(x, 2).to_vector() == Values{2, 2});
  CHECK(diff(x, 9).sizes() == IntArray{0});
  CHECK(diff(x, 1, 0, tensor({0}, {kInt64}), tensor({20, 21}, {kInt64})).to_vector() ==
        Values{1, 3, 5, 7, 4, 1});
  CHECK(diff(tensor({1, 0, 0}, {kBool})).dtype() == kBool);
  CHECK(trapezoid(x).item<double>() == 21.5);
  CHECK(trapezoid(x, 2).dtype() == kFloat32);
  CHECK(trapezoid(x, tensor({0, 1, 3, 4}, {kFloat64})).item<double>() == 28);
  CHECK(cumulative_trapezoid(to(x, kFloat64)).to_vector() == Values{2.5, 9, 21.5});
  CHECK(trapezoid(zeros({2, 0})).to_vector() == Values{0, 0});
  CHECK(trapezoid(zeros({2, 3}), zeros({4, 2, 3})).sizes() == IntArray{4, 2});
  CHECK(trapezoid(full({3000}, 1.0, {kBFloat16})).item<double>() == 2992);  // 2999, rounded once
  CHECK(category_of([&] { diff(x, -1); }) == Category::bad_argument);
  CHECK(category_of([&] { diff(scalar_tensor(1.0)); }) == Category::bad_dim);
  CHECK(category_of([&] { diff(x, 1, 0, zeros({1, 1}, {kInt64})); }) == Category::bad_dim);
  CHECK(category_of([&] { trapezoid(x, zeros({3})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { trapezoid(to(x, kBool)); }) == Category::dtype_mismatch);
}

TEST_CASE("histograms") {
  const Tensor x = tensor({-1, 0, 0.5, 1, 2, 3, kNan}, {kFloat32});
  CHECK(histc(x, 2, 0, 2).to_vector() == Values{2, 2});
  CHECK(histc(tensor({1, 2, 3}, {kFloat64}), 2).to_vector() == Values{1, 2});
  CHECK(histc(tensor({5, 5}, {kBFloat16}), 3).to_vector() == Values{0, 2, 0});
  CHECK(histc(zeros({0}), 2).to_vector() == Values{0, 0});
  const Tensor many = input({300, 300}, 0, 1);
  CHECK(sum(histc(transpose(many, 0, 1), 7, 0, 1)).item<double>() == 90000);
  CHECK(category_of([&] { histc(x, 0); }) == Category::bad_argument);
  CHECK(category_of([&] { histc(x, 2, 1, 0); }) == Category::bad_argument);
  CHECK(category_of([&] { histc(x); }) == Category::bad_argument);
  CHECK(category_of([] { histc(tensor({1}, {kInt64})); }) == Category::dtype_mismatch);
}

TEST_CASE("bincount") {
  const Tensor x = tensor({3, 1, 3, 0}, {kInt32});
  CHECK(bincount(x).to_vector() == Values{1, 1, 0, 2});
  CHECK(bincount(x, {}, 6).sizes() == IntArray{6});
  CHECK(bincount(x, tensor({0.5, 1, 2, 4}, {kFloat32})).dtype() == kFloat32);
  CHECK(bincount(x, tensor({1, 2, 3, 4}, {kInt64})).dtype() == kFloat64);
  CHECK(bincount(x, tensor({0.5, 1, 2, 4}, {kFloat64})).to_vector() == Values{4, 1, 0, 2.5});
  CHECK(bincount(zeros({0}, {kInt64}), {}, 2).to_vector() == Values{0, 0});
  CHECK(category_of([] { bincount(tensor({-1}, {kInt64})); }) == Category::bad_argument);
  CHECK(category_of([&] { bincount(x, {}, -1); }) == Category::bad_argument);
  CHECK(category_of([&] { bincount(x, zeros({3})); }) == Category::shape_mismatch);
  CHECK(category_of([] { bincount(zeros({2, 2}, {kInt64})); }) == Category::bad_dim);
  CHECK(category_of([] { bincount(zeros({2})); }) == Category::dtype_mismatch);
}

TEST_CASE("searches") {
  const Tensor rows = tensor({1, 3, 5, 2, 4, 6}, {2, 3}, {kInt64}),
               values = tensor({3, 6, 3, 6}, {2, 2}, {kInt64});
  CHECK(searchsorted(rows, values).to_vector() == Values{1, 3, 1, 2});
  CHECK(searchsorted(rows, values, true, true).dtype() == kInt32);
  CHECK(searchsorted(rows, values, false, false, "right").to_vector() == Values{2, 3, 1, 3});
  const Tensor edges = tensor({1, 2, 2, 4}, {kFloat16});
  CHECK(bucketize(tensor({0, 2, kNan, 9}, {2, 2}, {kFloat16}), edges).to_vector() == Values{0, 1, 4, 4});
  CHECK(bucketize(2, edges, false, true).item<int64_t>() == 3);
  CHECK(searchsorted(tensor({1, 2}, {kInt64}), 1.5).item<int64_t>() == 1);
  const Tensor shuffled = tensor({5, 1, 3}, {kFloat64}), order = tensor({1, 2, 0}, {kInt64});
  CHECK(searchsorted(shuffled, scalar_tensor(4.0, {kFloat64}), false, false, {}, order).item<int64_t>() == 2);
  CHECK(searchsorted(zeros({0}), zeros({2})).to_vector() == Values{0, 0});
  CHECK(searchsorted(zeros({2, 3}), zeros({2, 0})).sizes() == IntArray{2, 0});
}

TEST_CASE("errors of searches") {
  const Tensor rows = zeros({2, 3}), line = zeros({3});
  CHECK(category_of([&] { searchsorted(rows, zeros({3, 1})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { searchsorted(rows, 1); }) == Category::bad_dim);
  CHECK(category_of([&] { searchsorted(line, zeros({1}, {kFloat64})); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { searchsorted(line, line, false, true, "left"); }) == Category::bad_argument);
  CHECK(category_of([&] { searchsorted(line, line, false, false, "middle"); }) == Category::bad_argument);
  CHECK(category_of([&] { bucketize(line, rows); }) == Category::bad_dim);
  const auto sorted_by = [&](const Tensor& order) {
    return category_of([&] { searchsorted(line, line, false, false, {}, order); });
  };
  CHECK(sorted_by(tensor({0, 1, 3}, {kInt64})) == Category::index_out_of_range);
  CHECK(sorted_by(tensor({0, 1}, {kInt64})) == Category::shape_mismatch);
  CHECK(sorted_by(line) == Category::dtype_mismatch);
}

TEST_CASE("distinct elements") {
  const Tensor x = tensor({2, 1, 2, 3, 1, 1}, {2, 3}, {kInt64});
  const UniqueResult all = unique(x, true, true, true);
  CHECK(all.output.to_vector() == Values{1, 2, 3});
  CHECK(all.inverse_indices.sizes() == IntArray{2, 3});
  CHECK(all.inverse_indices.to_vector() == Values{1, 0, 1, 2, 0, 0});
  CHECK(all.counts.to_vector() == Values{3, 2, 1});
  CHECK_FALSE(unique(x).counts.defined());
  CHECK(unique_consecutive(x).output.to_vector() == Values{2, 1, 2, 3, 1});
  CHECK(unique(tensor({kNan, 0, kNan, -0.0}, {kFloat32})).output.sizes() == IntArray{3});
  CHECK(unique(zeros({0}), true, true, true).counts.sizes() == IntArray{0});
  CHECK(unique(scalar_tensor(2.0), true, true).inverse_indices.sizes().empty());
  CHECK(unique(tensor({1, 0, 1}, {kBool})).output.to_vector() == Values{0, 1});
}

TEST_CASE("distinct slices") {
  const Tensor x = tensor({1, 2, 0, 5, 1, 2, 0, 4}, {4, 2}, {kFloat64});
  const UniqueResult rows = unique(x, true, true, true, 0);
  CHECK(rows.output.to_vector() == Values{0, 4, 0, 5, 1, 2});
  CHECK(rows.inverse_indices.to_vector() == Values{2, 1, 2, 0});
  CHECK(rows.counts.to_vector() == Values{1, 1, 2});
  CHECK(unique(transpose(x, 0, 1), true, false, false, -1).output.sizes() == IntArray{2, 3});
  CHECK(unique_consecutive(tensor({1, 2, 1, 2, 3, 4}, {3, 2}, {kInt64}), true, true, 0).counts.to_vector() ==
        Values{2, 1});
  CHECK(unique(zeros({0, 3}), true, false, false, 0).output.sizes() == IntArray{0, 3});
  CHECK(category_of([] { unique(zeros({3, 0}), true, false, false, 0); }) == Category::bad_argument);
  CHECK(category_of([&] { unique(x, true, false, false, 2); }) == Category::bad_dim);
}

TEST_CASE("covariances") {
  const Tensor x = tensor({1, 2, 3, 2, 4, 6}, {2, 3}, {kFloat64});
  CHECK(cov(x).to_vector() == Values{1, 2, 2, 4});
  CHECK(corrcoef(x).to_vector() == Values{1, 1, 1, 1});
  CHECK(cov(x.select(0, 0)).sizes().empty());
  CHECK(cov(tensor({1, 2, 3}, {kInt64})).dtype() == kFloat32);
  const Tensor twice = tensor({1, 2, 1}, {kInt64});
  CHECK(cov(x, 1, twice).to_vector()[0] == var(tensor({1, 2, 2, 3}, {kFloat64})).item<double>());
  CHECK(category_of([&] { cov(x, 1, to(twice, kFloat64)); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { cov(x, 1, {}, twice); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { cov(x, 1, tensor({1, 1}, {kInt64})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { cov(zeros({1, 1, 1})); }) == Category::bad_dim);
}

}  // namespace
}  // namespace retrograd
