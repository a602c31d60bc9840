// Cumulative sums and products, and the recurrence that their derivatives use. Not tested here: PyTorch's values
// (tests/conformance), speed.
#include "ops/scan.h"

#include <cmath>
#include <limits>
#include <string_view>

#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::gradcheck;
using testing::input;

using Values = std::vector<double>;

TEST_CASE("cumsum and cumprod along any dim and layout") {
  const Tensor x = tensor({1, 2, 3, 4, 5, 6}, {2, 3}, {kFloat32});
  CHECK(cumsum(x, 1).to_vector() == Values{1, 3, 6, 4, 9, 15});
  CHECK(cumsum(x, 0).to_vector() == Values{1, 2, 3, 5, 7, 9});
  CHECK(cumprod(transpose(x, 0, 1), -2).to_vector() == Values{1, 4, 2, 20, 6, 120});
  CHECK(cumprod(tensor({3, 0, 7}, {kInt32}), 0).dtype() == kInt64);
  CHECK(cumsum(tensor({1, 1, 0}, {kBool}), 0).to_vector() == Values{1, 2, 2});
  CHECK(cumsum(x, 0, kFloat64).dtype() == kFloat64);
  CHECK(cumsum(zeros({0, 2}), 0).sizes() == IntArray{0, 2});
  CHECK(cumsum(tensor({4}, {}, {kFloat32}), 0).item<double>() == 4);
}

TEST_CASE("a float32 scan accumulates in double") {
  const int64_t n = 2'000'000;
  const Tensor y = cumsum(full({n}, 0.1), 0);
  const double want = static_cast<double>(n) * static_cast<double>(0.1f);
  CHECK(std::abs(y.select(0, n - 1).item<double>() / want - 1) < 1e-7);
}

TEST_CASE("exclusive products leave the element itself out") {
  const Tensor x = tensor({2, 3, 4}, {kFloat64});
  CHECK(ops::exclusive_cumprod(x, 0, false).to_vector() == Values{1, 2, 6});
  CHECK(ops::exclusive_cumprod(x, 0, true).to_vector() == Values{12, 4, 1});
}

TEST_CASE("products of a long row are those of its elements in order, also beyond the range of double") {
  constexpr int64_t n = 6 * 4096 + 5, kFirst = 7, kLater = 3 * 4096 + 11;  // some pieces
  const double inf = std::numeric_limits<double>::infinity();
  struct Row {
    std::string_view what;
    double at_first, at_later, elsewhere;
  };
  const Row row = GENERATE_COPY(values<Row>({{"in range", 0.5, 4, 1},
                                             {"infinite soon", 2, 3, 1.5},
                                             {"infinite, then 0", 2, 0, 1.5},
                                             {"0 soon by rounding", 1, -1, 0.5},
                                             {"0 by rounding, then infinite", 1, inf, 0.5},
                                             {"infinite, then pieces that alone round to 0", inf, -1, 0.5},
                                             {"infinite, then small, then 0", inf, 0, 0.5},
                                             {"0, then pieces that alone are infinite", 0, 1, 1.5},
                                             {"0, then infinite", 0, -inf, 1.5},
                                             {"not a number", 1, std::nan(""), 0.5}}));
  INFO(row.what);
  Values elements(n, row.elsewhere);
  elements[kFirst] = row.at_first;
  elements[kLater] = row.at_later;
  const Tensor x = tensor(elements, {n}, {kFloat32});
  const auto check = [&](const Values& found, bool reverse, bool exclusive) {
    double product = 1;
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(reverse ? n - 1 - i : i);
      const double before = product;
      product *= elements[at];
      const float want = static_cast<float>(exclusive ? before : product);
      const bool is_right = std::isnan(want)   ? std::isnan(found[at])
                            : std::isinf(want) ? found[at] == want
                                               : std::abs(found[at] - want) <= 1e-6 * std::abs(want);
      if (!is_right) FAIL("at " << at << ": " << found[at] << ", not " << want);
    }
  };
  check(cumprod(x, 0).to_vector(), false, false);
  check(ops::exclusive_cumprod(x, 0, false).to_vector(), false, true);
  check(ops::exclusive_cumprod(x, 0, true).to_vector(), true, true);
}

TEST_CASE("derivatives of scans, zeros included, to third order") {
  const Tensor x = input({2, 4}), zeros = tensor({2, 0, 3, 0, 1.5, -1}, {2, 3}, {kFloat64, kCPU, true});
  gradcheck([](const Tensors& in) { return mul(cumsum(in[0], 1), in[0]); }, {x});
  gradcheck([](const Tensors& in) { return cumprod(in[0], 1); }, {x});
  gradcheck([](const Tensors& in) { return cumprod(in[0], 0); }, {zeros});
  gradcheck([](const Tensors& in) { return cumprod(in[0], 1); }, {zeros});
  for (bool reverse : {false, true})
    gradcheck([=](const Tensors& in) { return ops::exclusive_cumprod(in[0], 1, reverse); }, {x});
  // The gradient of the gradient holds recurrences: its own second derivative differentiates them again.
  gradcheck(
      [](const Tensors& in) {
        EnableGradGuard records;
        return autograd::grad({sum(mul(cumprod(in[0], 1), in[1]))}, {in[0]}, {}, true, true)[0];
      },
      {x, input({2, 4}, -1, 1, 9)});
}

TEST_CASE("refused scans") {
  CHECK_THROWS_AS(cumsum(zeros({2}), 1), Error);
  CHECK_THROWS_AS(cumprod(to(zeros({2}), kFloat8_e4m3fn), 0), Error);
}

}  // namespace
}  // namespace retrograd
