// Factories of sequences and index lists: arange, linspace, logspace, tril_indices, triu_indices. Values,
// dtypes, ends, errors.
#include "ops/creation.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace retrograd {
namespace {

using Values = std::vector<double>;

TEST_CASE("arange: dtype, length and values as in PyTorch") {
  CHECK(arange(5).to_vector() == Values{0, 1, 2, 3, 4});
  CHECK(arange(5).dtype() == kInt64);
  CHECK(arange(2, 9, 3).to_vector() == Values{2, 5, 8});
  CHECK(arange(9, 2, -3).to_vector() == Values{9, 6, 3});
  CHECK(arange(3, 3).sizes() == IntArray{0});
  CHECK(arange(0, 1, 0.3).dtype() == kFloat32);
  CHECK(arange(0, 1, 0.3, kFloat64).to_vector() == Values{0, 0.3, 0.6, 0.3 * 3});
  CHECK(arange(1.0, 0.0, -0.25).to_vector() == Values{1, 0.75, 0.5, 0.25});
  CHECK(arange(3, kHalf).dtype() == kHalf);
  const int64_t big = (int64_t{1} << 60) + 1;
  CHECK(select(arange(big, big + 2), 0, 1).item<int64_t>() == big + 1);
  CHECK(category_of([] { arange(5, 0); }) == Category::bad_argument);
  CHECK(category_of([] { arange(0, 5, 0); }) == Category::bad_argument);
  CHECK(category_of([] { arange(0, INFINITY); }) == Category::bad_argument);
  CHECK(category_of([] { arange(0, 1, NAN); }) == Category::bad_argument);
}

// Every element of sequences of all lengths around those of registers.
TEST_CASE("arange: each element, whatever the length") {
  const auto counted = [](int64_t from, int64_t by, int64_t n, ScalarType dtype) {
    const Tensor t = arange(from, from + by * n, by, dtype);
    REQUIRE(t.numel() == n);
    for (int64_t i = 0; i < n; ++i)
      if (dtype == kInt64)
        REQUIRE(select(t, 0, i).item<int64_t>() == from + by * i);
      else
        REQUIRE(select(t, 0, i).item<float>() == static_cast<float>(from + by * i));
  };
  constexpr int64_t narrow = int64_t{1} << 31, wide = int64_t{1} << 60;
  for (const ScalarType dtype : {kInt64, kFloat32})
    for (int64_t n = 0; n < 20; ++n)
      for (const int64_t by : {int64_t{1}, int64_t{-3}, int64_t{1} << 40})
        for (const int64_t from :
             {int64_t{0}, narrow - 10, -narrow - 1, 10 - narrow, (int64_t{1} << 24) - 5, -wide - 1})
          counted(from, by, n, dtype);
  for (int n = 1; n < 40; ++n) {
    const Tensor t = arange(0.1, 0.1 + 0.3 * (n - 0.5), 0.3);
    REQUIRE(t.numel() == n);
    for (int i = 0; i < n; ++i) REQUIRE(select(t, 0, i).item<float>() == static_cast<float>(0.1 + 0.3 * i));
  }
}

TEST_CASE("numbers beyond all integers") {
  const double huge = 1e300, nan = std::nan("");
  const double least = static_cast<double>(std::numeric_limits<int64_t>::min());
  CHECK(tensor({huge, -huge, nan, 2.9, -2.9}, {kInt64}).to_vector() == Values{least, least, least, 2, -2});
  CHECK(Scalar(huge).to_int() == std::numeric_limits<int64_t>::min());
  CHECK(Scalar(-0x1p63).to_int() == std::numeric_limits<int64_t>::min());
}

TEST_CASE("memory that is not initialised holds bools at least") {
  const Tensor garbage = full({64}, 190, {kUInt8}).clone();
  CHECK(empty({64}, {kBool}).to_vector() == Values(64));
  CHECK(empty_like(garbage.to(kBool)).to_vector() == Values(64));
}

TEST_CASE("an undefined dtype is refused") {
  const TensorOptions none(ScalarType::Undefined);
  CHECK(category_of([&] { empty({2}, none); }) == Category::bad_argument);
  CHECK(category_of([&] { full({2}, 1, none); }) == Category::bad_argument);
  CHECK(category_of([&] { arange(0, 3, 1, none); }) == Category::bad_argument);
  CHECK(category_of([&] { ones({2}).to(ScalarType::Undefined); }) == Category::bad_argument);
}

TEST_CASE("linspace meets both ends") {
  CHECK(linspace(0, 1, 5).to_vector() == Values{0, 0.25, 0.5, 0.75, 1});
  CHECK(linspace(3, 9, 1).to_vector() == Values{3});
  CHECK(linspace(3, 9, 0).sizes() == IntArray{0});
  CHECK(linspace(0, 10, 4, {kInt64}).to_vector() == Values{0, 3, 6, 10});
  CHECK(linspace(-5, 5, 4, {kInt32}).to_vector() == Values{-5, -1, 1, 5});
  const Values v = linspace(0.1, 0.7, 1000, {kFloat64}).to_vector();
  CHECK((v.front() == 0.1 && v.back() == 0.7));
  CHECK(category_of([] { linspace(0, 1, -1); }) == Category::bad_argument);
  CHECK(category_of([] { linspace(0, 1, 3, {kBool}); }) == Category::dtype_mismatch);
}

TEST_CASE("logspace") {
  CHECK(logspace(0, 3, 4).to_vector() == Values{1, 10, 100, 1000});
  CHECK(logspace(0, 3, 4, 2, {kInt64}).to_vector() == Values{1, 2, 4, 8});
  CHECK(logspace(0, 3, 4, -2).to_vector() == Values{1, -2, 4, -8});
  CHECK(category_of([] { logspace(0, 1, -1); }) == Category::bad_argument);
}

TEST_CASE("indices of triangles are the places of tril and triu") {
  CHECK(tril_indices(3, 3, -1).to_vector() == Values{1, 2, 2, 0, 0, 1});
  CHECK(triu_indices(2, 4, 1, {kInt32}).to_vector() == Values{0, 0, 0, 1, 1, 1, 2, 3, 2, 3});
  CHECK(tril_indices(0, 3).sizes() == IntArray{2, 0});
  for (int64_t offset = -5; offset <= 6; ++offset) {
    const Tensor ones_of_both = ones({4, 5});
    for (bool upper : {false, true}) {
      const Tensor want = upper ? triu(ones_of_both, offset) : tril(ones_of_both, offset);
      const Tensor places = upper ? triu_indices(4, 5, offset) : tril_indices(4, 5, offset);
      Values got(20);
      const Values p = places.to_vector();
      const size_t n = p.size() / 2;
      for (size_t i = 0; i < n; ++i) got[static_cast<size_t>(p[i] * 5 + p[n + i])] += 1;
      CHECK(got == want.to_vector());
    }
  }
  CHECK(category_of([] { tril_indices(-1, 2); }) == Category::bad_argument);
  CHECK(category_of([] { triu_indices(1, 2, 0, {kFloat32}); }) == Category::dtype_mismatch);
}

}  // namespace
}  // namespace retrograd
