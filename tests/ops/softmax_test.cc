// Softmax and log-softmax against exponentials in double. Not tested here: PyTorch's values and saved sets
// (tests/conformance), speed.
#include "ops/softmax.h"

#include <limits>

#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::gradcheck;
using testing::input;

// Softmax of row-major [outer, n, inner] along n.
std::vector<double> reference(const std::vector<double>& x, size_t outer, size_t n, size_t inner, bool log) {
  std::vector<double> y(x.size());
  for (size_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < inner; ++i) {
      double sum = 0;
      for (size_t k = 0; k < n; ++k) sum += std::exp(x[(o * n + k) * inner + i]);
      for (size_t k = 0; k < n; ++k) {
        const size_t at = (o * n + k) * inner + i;
        y[at] = log ? x[at] - std::log(sum) : std::exp(x[at]) / sum;
      }
    }
  return y;
}

TEST_CASE("softmax along each dim, for lengths around the width of a register and of a chunk") {
  for (ScalarType dtype : {kFloat64, kFloat32, kBFloat16, kFloat16})
    for (const auto& [n, width] : {std::pair<int64_t, int64_t>{1, 3},
                                   {3, 3},
                                   {8, 3},
                                   {17, 3},
                                   {64, 3},
                                   {4099, 3},
                                   {3, 5},
                                   {4, 4},
                                   {9, 37},
                                   {12, 5},
                                   {16, 70},
                                   {300, 70}}) {
      const double tolerance = dtype == kFloat64   ? 1e-14
                               : dtype == kFloat32 ? 2e-6
                               : dtype == kFloat16 ? 2e-3
                                                   : 1e-2;
      const Tensor x = to(input({2, n, width}, -4, 4, 2).detach(), dtype);
      for (bool log : {false, true}) {
        const auto f = [&](const Tensor& t, int64_t dim) {
          return log ? log_softmax(t, dim) : softmax(t, dim);
        };
        const Tensor y = f(x, 1);
        CHECK(y.is_contiguous());
        const std::vector<double> want = reference(x.to_vector(), 2, static_cast<size_t>(n),
                                                   static_cast<size_t>(width), log),
                                  got = y.to_vector();
        for (size_t i = 0; i < want.size(); ++i)
          REQUIRE(std::abs(got[i] - want[i]) <= tolerance * std::max(1.0, std::abs(want[i])));
        const Tensor last = f(transpose(x, 1, 2).contiguous(), 2),
                     turned = f(transpose(transpose(x, 1, 2).contiguous(), 1, 2), 1);
        CHECK(turned.to_vector() == got);  // for any layout of the operand
        const std::vector<double> along = transpose(last, 1, 2).contiguous().to_vector();
        for (size_t i = 0; i < want.size(); ++i)
          REQUIRE(std::abs(along[i] - want[i]) <= tolerance * std::max(1.0, std::abs(want[i])));
      }
    }
}

TEST_CASE("large and infinite logits") {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor y = softmax(tensor({1e4, 1e4, -inf}, {kFloat32}), 0);
  CHECK(y.to_vector() == std::vector<double>{0.5, 0.5, 0});
  CHECK(log_softmax(tensor({5, -inf}, {kFloat64}), 0).to_vector() == std::vector<double>{0, -inf});
  CHECK(std::isnan(softmax(tensor({-inf, -inf}, {kFloat32}), 0).to_vector()[0]));
}

TEST_CASE("derivatives of softmax") {
  const Tensor x = input({2, 5, 3});
  for (int64_t dim : {0, 1, 2}) {
    gradcheck([=](const Tensors& in) { return softmax(in[0], dim); }, {x});
    gradcheck([=](const Tensors& in) { return log_softmax(in[0], dim); }, {x});
  }
  for (int64_t n : {7, 8, 9}) {
    gradcheck([=](const Tensors& in) { return softmax(in[0], 1); }, {input({3, n})});
    gradcheck([=](const Tensors& in) { return log_softmax(in[0], 1); }, {input({3, n})});
  }
  gradcheck([](const Tensors& in) { return log_softmax(in[0], 0); }, {input({})});
  gradcheck([](const Tensors& in) { return softmax(to(in[0], kFloat64), -1, kFloat64); }, {x});
}

TEST_CASE("gradients of short rows in float32 are those in float64") {
  for (int64_t n : {2, 8, 9, 15, 16, 17, 32, 33})
    for (bool log : {false, true}) {
      std::vector<std::vector<double>> found;
      for (ScalarType dtype : {kFloat64, kFloat32}) {
        const Tensor x = to(input({75, n}, -3, 3, 4).detach(), dtype).requires_grad_();
        const Tensor y = log ? log_softmax(x, 1) : softmax(x, 1);
        found.push_back(
            autograd::grad({y}, {x}, {to(input({75, n}, -1, 1, 5).detach(), dtype)})[0].to_vector());
      }
      for (size_t i = 0; i < found[0].size(); ++i) REQUIRE(std::abs(found[0][i] - found[1][i]) <= 1e-5);
    }
}

TEST_CASE("dtype, empty rows and refusals") {
  CHECK(softmax(tensor({1, 2}, {kInt64}), 0, kFloat32).dtype() == kFloat32);
  CHECK(softmax(zeros({0, 4}), 1).sizes() == IntArray{0, 4});
  CHECK(softmax(zeros({4, 0}), 1).numel() == 0);
  CHECK(softmax(tensor({3}, {}, {kFloat32}), 0).item<double>() == 1);
  CHECK_THROWS_AS(softmax(tensor({1, 2}, {kInt64}), 0), Error);
  CHECK_THROWS_AS(log_softmax(zeros({2, 3}), 2), Error);
}

}  // namespace
}  // namespace retrograd
