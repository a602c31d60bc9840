// Reductions against sums in long double and against differences. Not tested here: conformance with PyTorch's
// values and saved sets (tests/conformance), speed, and reductions over more than eight dims, which no tensor
// has.
#include "ops/reduce.h"

#include <cmath>
#include <limits>

#include "cpu/parallel.h"
#include "ops/comparison.h"
#include "ops/views.h"
#include "tests/errors.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::gradcheck;
using testing::input;

const double kInf = std::numeric_limits<double>::infinity();

std::vector<double> values(const Tensor& t) { return t.to_vector(); }

Tensor plain(const Shape& shape, int seed = 3, ScalarType dtype = kFloat64) {
  return to(input(shape, -2, 2, seed).detach(), dtype);
}

// The same values in memory that is not row-major.
Tensor transposed_copy(const Tensor& x) { return transpose(contiguous(transpose(x, 0, -1)), 0, -1); }

TEST_CASE("sum and mean reduce the dims asked for, whatever the layout") {
  const Tensor x = plain({4, 5, 6});
  const std::vector<double> v = values(x);
  for (const Tensor& t : {x, transposed_copy(x)}) {
    const Tensor by_middle = sum(t, {1});
    REQUIRE(by_middle.sizes() == IntArray{4, 6});
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t k = 0; k < 6; ++k) {
        double want = 0;
        for (int64_t j = 0; j < 5; ++j) want += v[static_cast<size_t>((i * 5 + j) * 6 + k)];
        CHECK(values(by_middle)[static_cast<size_t>(i * 6 + k)] == Approx(want));
      }
    const Tensor by_ends = mean(t, {0, -1}, true);
    REQUIRE(by_ends.sizes() == IntArray{1, 5, 1});
    double want = 0;
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t k = 0; k < 6; ++k) want += v[static_cast<size_t>((i * 5 + 2) * 6 + k)];
    CHECK(values(by_ends)[2] == Approx(want / 24));
  }
}

TEST_CASE("a float32 sum of a million elements is good to a millionth") {
  const int64_t n = 1'000'003;
  std::vector<double> v(static_cast<size_t>(n));
  long double want = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = static_cast<double>(static_cast<float>(std::fmod(0.6180339887 * static_cast<double>(i), 1.0)));
    want += static_cast<long double>(v[i]);
  }
  const Tensor x = tensor(v, {n}, {kFloat32});
  CHECK(std::abs(sum(x).item<double>() / static_cast<double>(want) - 1) < 2e-7);
  CHECK(std::abs(mean(x).item<double>() * static_cast<double>(n) / static_cast<double>(want) - 1) < 2e-7);
  const Tensor columns = sum(expand(reshape(x, {n, 1}), {n, 8}).contiguous(), {0});
  for (double c : values(columns)) CHECK(std::abs(c / static_cast<double>(want) - 1) < 2e-7);
}

TEST_CASE("results do not depend on the number of threads") {
  const Tensor x = plain({300, 517}, 5, kFloat32), flat = reshape(x, {300 * 517});
  const int threads = cpu::get_num_threads();
  std::vector<std::vector<double>> results[2];
  for (int pass = 0; pass < 2; ++pass) {
    cpu::set_num_threads(pass == 0 ? 1 : 3);
    for (const Tensor& y : {sum(x, {0}), sum(x, {1}), sum(flat), var(flat), logsumexp(flat, {0}),
                            prod(mul(flat, 1.3)), argmax(flat)})
      results[pass].push_back(values(y));
  }
  cpu::set_num_threads(threads);
  CHECK(results[0] == results[1]);
}

TEST_CASE("columns are summed for every floating dtype, with several reduced dims and strips") {
  for (ScalarType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    const Tensor x = to(plain({3, 7, 5000}, 4), dtype), y = sum(x, {0, 1});
    const std::vector<double> v = values(x), got = values(y);
    REQUIRE(y.dtype() == dtype);
    for (size_t j : {size_t{0}, size_t{4095}, size_t{4096}, size_t{4999}}) {
      double want = 0;
      for (size_t i = 0; i < 21; ++i) want += v[i * 5000 + j];
      CHECK(got[j] == Approx(want).epsilon(dtype == kBFloat16 ? 1e-2 : dtype == kFloat16 ? 2e-3 : 1e-6));
    }
  }
  const Tensor middle = sum(plain({3, 700, 33}), {1});
  CHECK(values(middle)[40] == Approx(sum(plain({3, 700, 33}).select(0, 1).select(1, 7)).item<double>()));
}

TEST_CASE("products of rows and columns of any length, zeros and infinities among them") {
  const auto check = [](const Tensor& x, int64_t dim) {
    const Tensor lines = (dim == 1 ? x : transpose(x, 0, 1)).contiguous();
    const std::vector<double> v = values(lines), got = values(prod(x, dim));
    const size_t n = static_cast<size_t>(lines.sizes()[1]);
    const double epsilon = x.dtype() == kBFloat16 ? 1e-2 : x.dtype() == kFloat16 ? 2e-3 : 1e-6;
    for (size_t i = 0; i < got.size(); ++i) {
      double want = 1;
      for (size_t k = 0; k < n; ++k) want *= v[i * n + k];
      if (std::isnan(want))
        CHECK(std::isnan(got[i]));
      else
        CHECK((got[i] == want || got[i] == Approx(want).epsilon(epsilon)));
    }
  };
  for (ScalarType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16})
    for (int64_t n : {1, 3, 15, 63, 64, 65, 127, 200, 4096, 4099, 9000})
      for (int64_t other : {2, 70}) {
        INFO(n << " and " << other);
        // Near 1, with both signs, and apart from each other by the row.
        const Tensor near = plain({n, other}, 3, kFloat64) * 0.01 + 1.0;
        const Tensor x = to(near * (1.0 - 2.0 * to(gt(plain({n, 1}, 7, kFloat64), 1.5), kFloat64)), dtype);
        for (int64_t dim : {0, 1}) check(x, dim);
        x.select(0, n / 2).select(0, 1).fill_(0.0);
        for (int64_t dim : {0, 1}) check(x, dim);
        x.select(0, 0).select(0, 0).fill_(std::numeric_limits<double>::infinity());
        for (int64_t dim : {0, 1}) check(x, dim);
      }
  const Tensor middle = prod(plain({3, 700, 33}) * 0.01 + 1.0, 1);
  CHECK(values(middle)[40] ==
        Approx(prod((plain({3, 700, 33}) * 0.01 + 1.0).select(0, 1).select(1, 7)).item<double>()));
  // Beyond the range of float32 in between.
  const Tensor wide = tensor({1e30, 1e30, 1e-30, 1e-30}, {4, 1}, {kFloat32});
  CHECK(prod(wide, 0).item<double>() == Approx(1));
  CHECK(values(prod(expand(wide, {4, 5}).contiguous(), 0))[3] == Approx(1));
}

TEST_CASE("rows that lie in runs are reduced as they would be in one piece") {
  for (ScalarType dtype : {kFloat32, kFloat64})
    for (const int64_t run : {1088, 1024, 784, 257}) {
      const Tensor x = plain({9, 3, run}, 5, dtype),
                   rows = reshape_to(contiguous(transpose(x, 0, 1)), {3, 9 * run});
      CHECK(values(sum(x, {0, 2})) == values(sum(rows, {1})));
      CHECK(values(amax(x, {0, 2})) == values(amax(rows, {1})));
      CHECK(values(amin(x, {0, 2})) == values(amin(rows, {1})));
      CHECK(values(mean(x, {0, 2})) == values(mean(rows, {1})));
    }
}

TEST_CASE("any and all of columns of bools") {
  for (const Shape& shape : {Shape{700, 40}, Shape{3, 70, 5000}, Shape{2, 9, 16}, Shape{1, 33}}) {
    const Tensor numbers = plain(shape);
    for (double cut : {-1.999, 1.999, 0.0}) {
      const Tensor x = gt(numbers, cut), counted = to(x, kInt64);
      for (const IntArray& dims : {IntArray{0}, IntArray{shape.rank() - 2}, IntArray{0, shape.rank() - 2}}) {
        if (dims.size() > 1 && shape.rank() == 2) continue;
        const Tensor found = sum(counted, dims);
        const double n = static_cast<double>(shape.numel().raw()) / static_cast<double>(found.numel());
        CHECK(values(any(x, dims)) == values(gt(found, 0)));
        CHECK(values(all(x, dims)) == values(eq(found, n)));
      }
    }
  }
}

TEST_CASE("dtypes of results") {
  const Tensor i = tensor({3, 4, -5}, {kInt32}), b = tensor({1, 0, 1}, {kBool}), u = tensor({0, 7}, {kUInt8});
  CHECK(sum(i).dtype() == kInt64);
  CHECK(sum(b).item<int64_t>() == 2);
  CHECK(prod(i).item<int64_t>() == -60);
  CHECK(mean(i, {}, false, kFloat64).item<double>() == Approx(2.0 / 3));
  CHECK(sum(i, {}, false, kFloat16).dtype() == kFloat16);
  CHECK(amax(i).dtype() == kInt32);
  CHECK(max(b).dtype() == kBool);
  CHECK(logsumexp(i, {0}).dtype() == kFloat32);
  CHECK(all(b).dtype() == kBool);
  CHECK(any(u).dtype() == kUInt8);
  CHECK(count_nonzero(u).item<int64_t>() == 1);
  CHECK(to_string(sum(plain({2}, 1, kFloat16)).impl().type()) == "f16[]");
}

TEST_CASE("no elements and no dims") {
  const Tensor none = zeros({0, 3}, {kFloat64}), scalar = tensor({2.5}, {}, {kFloat64});
  CHECK(sum(none).item<double>() == 0);
  CHECK(prod(none).item<double>() == 1);
  CHECK(std::isnan(mean(none).item<double>()));
  CHECK(std::isnan(var(none).item<double>()));
  CHECK(logsumexp(none, {0}).to_vector() == std::vector<double>(3, -kInf));
  CHECK(vector_norm(none).item<double>() == 0);
  CHECK(sum(none, {1}).sizes() == IntArray{0});
  CHECK(all(none).item<bool>());
  CHECK_FALSE(any(none).item<bool>());
  CHECK(sum(scalar, {0}).item<double>() == 2.5);
  CHECK(max(scalar, 0).indices.item<int64_t>() == 0);
  CHECK(amax(zeros({3, 0}), {0}).sizes() == IntArray{0});
}

TEST_CASE("extremes: the first of equals, and NaN above all") {
  const Tensor x = tensor({1, 7, 7, -3, -3, 2}, {2, 3}, {kFloat32});
  CHECK(values(argmax(x, 1)) == std::vector<double>{1, 2});
  CHECK(argmax(x).item<int64_t>() == 1);
  CHECK(argmin(x).item<int64_t>() == 3);
  CHECK(argmin(x, {}, true).sizes() == IntArray{1, 1});
  const auto [least, where] = min(x, 0);
  CHECK(values(least) == std::vector<double>{-3, -3, 2});
  CHECK(values(where) == std::vector<double>{1, 1, 1});
  std::vector<double> v(10'000, 1.0);
  v[9'000] = v[9'500] = std::nan("");
  const Tensor nan = tensor(v, {10'000}, {kFloat32});
  CHECK(std::isnan(amin(nan).item<double>()));
  CHECK(argmax(nan).item<int64_t>() == 9'000);
  std::vector<double> late(10'000, -5.0);
  late[8'192] = late[9'999] = 4;
  CHECK(argmax(tensor(late, {10'000}, {kInt64})).item<int64_t>() == 8'192);
  CHECK(argmax(tensor(late, {10'000}, {kFloat64})).item<int64_t>() == 8'192);
}

TEST_CASE("variance does not cancel") {
  std::vector<double> v(20'000);
  for (size_t i = 0; i < v.size(); ++i) v[i] = 1e6 + static_cast<double>(i % 2);
  const Tensor x = tensor(v, {20'000}, {kFloat64});
  CHECK(var(x, {}, 0).item<double>() == Approx(0.25).epsilon(1e-9));
  CHECK(std(to(x, kFloat32), {}, 0).item<double>() == Approx(0.5).epsilon(1e-6));
  CHECK(std::isnan(var(tensor({1.0}, {1}, {kFloat64})).item<double>()));
}

TEST_CASE("logsumexp of infinities and of large numbers") {
  CHECK(logsumexp(tensor({1000, 1000}, {kFloat32}), {0}).item<double>() == Approx(1000 + std::log(2.0)));
  CHECK(logsumexp(tensor({-kInf, -kInf}, {kFloat32}), {0}).item<double>() == -kInf);
  CHECK(logsumexp(tensor({kInf, 0}, {kFloat32}), {0}).item<double>() == kInf);
  std::vector<double> v(9'000, -kInf);
  v[8'999] = 3;
  CHECK(logsumexp(tensor(v, {9'000}, {kFloat64}), {0}).item<double>() == 3);
}

TEST_CASE("norms of every order") {
  const Tensor x = tensor({3, -4, 0}, {kFloat64});
  CHECK(vector_norm(x).item<double>() == Approx(5));
  CHECK(vector_norm(x, 1).item<double>() == Approx(7));
  CHECK(vector_norm(x, 3).item<double>() == Approx(std::cbrt(91.0)));
  CHECK(vector_norm(x, 0.5).item<double>() == Approx(std::pow(std::sqrt(3.0) + 2, 2)));
  CHECK(vector_norm(x, kInf).item<double>() == 4);
  CHECK(vector_norm(x, -kInf).item<double>() == 0);
  CHECK(vector_norm(x, 0).item<double>() == 2);
  const Tensor zero = zeros({3}, {kFloat64, kCPU, true});
  CHECK(values(autograd::grad({vector_norm(zero)}, {zero})[0]) == std::vector<double>{0, 0, 0});
}

TEST_CASE("derivatives of reductions") {
  const Tensor x = input({3, 4, 2});
  const auto check = [&](auto f) { gradcheck([&](const Tensors& in) { return f(in[0]); }, {x}); };
  check([](const Tensor& t) { return sum(mul(t, t), {0, 2}); });
  check([](const Tensor& t) { return mul(mean(mul(t, t), {1}, true), t); });
  check([](const Tensor& t) { return prod(t, 1); });
  check([](const Tensor& t) { return prod(narrow(t, 0, 0, 1)); });
  check([](const Tensor& t) { return mul(amax(t, {0, 2}), 2); });
  check([](const Tensor& t) { return mul(amin(t), amax(t, {1})); });
  check([](const Tensor& t) { return max(mul(t, t), 1).values; });
  check([](const Tensor& t) { return min(mul(t, t), -1, true).values; });
  check([](const Tensor& t) { return var(t, {0, 1}); });
  check([](const Tensor& t) { return std(t, {2}, 0, true); });
  check([](const Tensor& t) { return std(t); });
  check([](const Tensor& t) { return logsumexp(t, {0, 2}); });
  for (double p : {1.0, 2.0, 3.0, 2.5, 0.5, -1.5, kInf, -kInf}) {
    INFO("order " << p);
    check([p](const Tensor& t) { return vector_norm(t, p, {1}); });
  }
}

TEST_CASE("a product with zeros has the derivatives of a polynomial") {
  for (const std::vector<double>& v : {std::vector<double>{2, 0, 3, -1}, {0, 2, 0, 5}}) {
    const Tensor x = tensor(v, {4}, {kFloat64, kCPU, true});
    gradcheck([](const Tensors& in) { return prod(in[0]); }, {x});
  }
}

TEST_CASE("ties share the gradient, but for the extreme along one dim") {
  const Tensor x = tensor({5, 1, 5, 5}, {2, 2}, {kFloat64, kCPU, true});
  CHECK(values(autograd::grad({max(x)}, {x})[0]) == std::vector<double>{1.0 / 3, 0, 1.0 / 3, 1.0 / 3});
  CHECK(values(autograd::grad({sum(amax(x, {0}))}, {x})[0]) == std::vector<double>{0.5, 0, 0.5, 1});
  CHECK(values(autograd::grad({sum(max(x, 0).values)}, {x})[0]) == std::vector<double>{1, 0, 0, 1});
}

TEST_CASE("std has derivatives of 0 where it is 0") {
  const Tensor x = full({3}, 2, {kFloat64}).requires_grad_(), w = tensor({1, -2, 4}, {kFloat64});
  const Tensor first = autograd::grad({std(x)}, {x}, {}, true, true)[0];
  CHECK(first.detach().to_vector() == std::vector<double>(3));
  CHECK(autograd::grad({first}, {x}, {w})[0].to_vector() == std::vector<double>(3));
}

TEST_CASE("refused reductions") {
  const Tensor x = plain({2, 3}), i = tensor({1, 2}, {kInt64}), none = zeros({0, 2});
  CHECK(category_of([&] { sum(x, {2}); }) == Category::bad_dim);
  CHECK(category_of([&] { sum(x, {0, -2}); }) == Category::bad_dim);
  CHECK(category_of([&] { prod(x, 5); }) == Category::bad_dim);
  CHECK(category_of([&] { mean(i); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { var(i); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { vector_norm(i); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { argmax(to(i, kBool)); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { sum(to(x, kFloat8_e5m2)); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { max(none); }) == Category::bad_argument);
  CHECK(category_of([&] { amin(none, {0}); }) == Category::bad_argument);
  CHECK(category_of([&] { argmin(none, 0); }) == Category::bad_argument);
  CHECK(category_of([&] { vector_norm(none, kInf); }) == Category::bad_argument);
}

}  // namespace
}  // namespace retrograd
