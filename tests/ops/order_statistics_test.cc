// Order statistics and quantiles: every dtype, layouts, which element is chosen, errors. Infinities and ties are in
// tests/ops/edges, PyTorch's values in tests/conformance.
#include "ops/order_statistics.h"

#include <algorithm>
#include <cmath>

#include "ops/index_ops.h"
#include "ops/quantile.h"
#include "ops/sort.h"
#include "ops/views.h"
#include "tests/errors.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::input;
using Values = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("the results of sorts and extremes are of one kind and unpack") {
  const Tensor x = tensor({3, 1, 2}, {kFloat64});
  for (const ValuesAndIndices& r : {min(x, 0), kthvalue(x, 1), topk(x, 1, 0, false)}) {
    const auto& [values, indices] = r;
    CHECK(values.item<double>() == 1);
    CHECK(indices.item<int64_t>() == 1);
  }
  CHECK(sort(x).values.to_vector() == Values{1, 2, 3});
  CHECK(max(x, 0).indices.item<int64_t>() == 0);
}

TEST_CASE("the k-th of every dtype, along any dim and layout") {
  for (const ScalarType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kUInt8}) {
    const Tensor x = tensor({5, 1, 4, 2, 9, 3}, {2, 3}, {dtype});
    const auto [second, places] = kthvalue(x, 2, 1);
    CHECK(second.dtype() == dtype);
    CHECK(places.dtype() == kInt64);
    CHECK(second.to_vector() == Values{4, 3});
    CHECK(places.to_vector() == Values{2, 2});
    CHECK(kthvalue(transpose(x, 0, 1), 2, 0, true).values.sizes() == IntArray{1, 2});
    CHECK(kthvalue(transpose(x, 0, 1), 2, 0).indices.to_vector() == Values{2, 2});
    CHECK(median(x, 0).values.to_vector() == Values{2, 1, 3});
    CHECK(median(x).item<double>() == 3);
    CHECK(nanmedian(x, -1).values.to_vector() == Values{4, 3});
    CHECK(mode(x, -1).values.to_vector() == Values{1, 2});
  }
  CHECK(kthvalue(tensor({7}, {}, {kInt64}), 1).values.item<int64_t>() == 7);
  const int64_t large = (int64_t{1} << 53) + 1;
  CHECK(median(tensor(std::vector<int64_t>{large, large + 1, large - 1}, {3}, {kInt64})).item<int64_t>() ==
        large);
}

TEST_CASE("the k-th of long rows is that of the sorted row") {
  const Tensor x = input({3, 1001}), sorted = sort(x, 1).values;
  for (const int64_t k : {1, 2, 500, 1001}) {
    const auto [value, place] = kthvalue(x, k, 1);
    CHECK(value.to_vector() == sorted.select(1, k - 1).to_vector());
    CHECK(gather(x, 1, unsqueeze(place, 1)).to_vector() == value.to_vector());
  }
  CHECK(median(x, 1).values.to_vector() == sorted.select(1, 500).to_vector());
}

TEST_CASE("NaN in order statistics") {
  const Tensor x = tensor({kNan, 2, 1, kNan}, {kFloat32});
  CHECK(kthvalue(x, 2).values.item<double>() == 2);
  CHECK(std::isnan(kthvalue(x, 3).values.item<double>()));
  CHECK(kthvalue(x, 3).indices.item<int64_t>() == 0);
  CHECK(std::isnan(median(x, 0).values.item<double>()));
  CHECK(nanmedian(x, 0).values.item<double>() == 1);
  CHECK(nanmedian(x, 0).indices.item<int64_t>() == 2);
  CHECK(mode(x).values.item<double>() == 1);
  CHECK(std::isnan(median(zeros({0})).item<double>()));
}

TEST_CASE("the mode is the smallest of the most frequent") {
  const Tensor x = tensor({3, 1, 3, 2, 1, 5, 5, 4, 0, 0, 0, 7}, {2, 6}, {kInt64});
  CHECK(mode(x, 1).values.to_vector() == Values{1, 0});
  CHECK(mode(x, 0).values.sizes() == IntArray{6});
  CHECK(mode(tensor({1, 1, 0}, {kBool})).values.item<double>() == 1);
}

TEST_CASE("quantiles: interpolation, the shape of q, keepdim") {
  const Tensor x = tensor({4, 1, 3, 2, 8, 5, 7, 6}, {2, 4}, {kFloat64}), q = tensor({0, 0.5, 1}, {kFloat64});
  CHECK(quantile(x, q, 1).sizes() == IntArray{3, 2});
  CHECK(quantile(x, q, 1).to_vector() == Values{1, 5, 2.5, 6.5, 4, 8});
  CHECK(quantile(x, q, 0, true).sizes() == IntArray{3, 1, 4});
  CHECK(quantile(x, 0.5, {}, true).sizes() == IntArray{1, 1});
  CHECK(quantile(x, 0.5).item<double>() == 4.5);
  const auto at = [&](std::string_view how) { return quantile(x, 0.4, 1, false, how).to_vector(); };
  CHECK(at("lower") == Values{2, 6});
  CHECK(at("higher") == Values{3, 7});
  CHECK(at("nearest") == Values{2, 6});
  CHECK(at("midpoint") == Values{2.5, 6.5});
  CHECK(quantile(scalar_tensor(3.0), 0.2, 0, true).sizes().empty());
  const Tensor some = tensor({kNan, 1, 2, kNan, kNan, kNan}, {2, 3}, {kFloat64});
  CHECK(nanquantile(some, 0.5, 1).to_vector()[0] == 1.5);
  CHECK(std::isnan(nanquantile(some, 0.5, 1).to_vector()[1]));
  CHECK(std::isnan(quantile(some, 0.5, 1).to_vector()[0]));
}

TEST_CASE("errors of order statistics") {
  const Tensor x = input({2, 3});
  CHECK(category_of([&] { kthvalue(x, 4); }) == Category::index_out_of_range);
  CHECK(category_of([&] { kthvalue(x, 0); }) == Category::index_out_of_range);
  CHECK(category_of([&] { median(x, 2); }) == Category::bad_dim);
  CHECK(category_of([&] { mode(zeros({2, 0})); }) == Category::bad_argument);
  CHECK(category_of([&] { median(zeros({0}, {kInt64})); }) == Category::bad_argument);
  CHECK(category_of([&] { median(zeros({2}, {kFloat8_e5m2})); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { quantile(x, 1.5); }) == Category::bad_argument);
  CHECK(category_of([&] { quantile(x, kNan); }) == Category::bad_argument);
  CHECK(category_of([&] { quantile(x, tensor({0.5, -0.5}, {kFloat64})); }) == Category::index_out_of_range);
  CHECK(category_of([&] { quantile(x, tensor({0.5}, {kFloat32})); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { quantile(x, zeros({1, 1}, {kFloat64})); }) == Category::bad_dim);
  CHECK(category_of([&] { quantile(x, 0.5, 0, false, "cubic"); }) == Category::bad_argument);
  CHECK(category_of([&] { quantile(zeros({2}, {kInt64}), 0.5); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { quantile(zeros({0}), 0.5); }) == Category::bad_argument);
}

}  // namespace
}  // namespace retrograd
