// scatter_reduce and index_reduce, and the other functions of positions of ops/index_functions.h: values of all dtypes,
// ranges and NaN, indices in any layout, errors, other sizes of a recorded function.
// Not tested here: derivatives (tests/ops/derivatives) except at ties, and results against PyTorch (tests/conformance).
#include "ops/scatter_reduce.h"

#include <cmath>
#include <limits>

#include "cpu/parallel.h"
#include "ops/index_functions.h"
#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace retrograd {
namespace {

using Values = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr ScalarType kAll[] = {kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kUInt8};

Tensor vector(const Values& v, ScalarType dtype = kFloat64) {
  return tensor(v, {static_cast<int64_t>(v.size())}, {dtype});
}
Tensor ints(const Values& v) { return vector(v, kInt64); }
Tensor count(const Shape& shape, ScalarType dtype = kFloat64) {
  return to(reshape_to(arange(0, shape.numel().value()), shape), dtype);
}
template <class F>
void check_fails(Category category, F f) {
  CHECK(category_of(f) == category);
}

TEST_CASE("each reduction, in each dtype, with and without what is there") {
  for (const ScalarType dtype : kAll) {
    const Tensor x = vector({2, 9, 4, 7}, dtype), index = ints({0, 2, 0, 1, 0}),
                 src = vector({3, 5, 1, 6, 2}, dtype);
    const auto reduced = [&](const char* how, bool self) {
      const Tensor y = scatter_reduce(x, 0, index, src, how, self);
      CHECK(y.dtype() == dtype);
      if (how[0] != 's') CHECK(index_reduce(x, 0, index, src, how, self).to_vector() == y.to_vector());
      return y.to_vector();
    };
    const bool is_real = is_floating(dtype);
    CHECK(reduced("sum", true) == Values{8, 15, 9, 7});
    CHECK(reduced("sum", false) == Values{6, 6, 5, 7});
    CHECK(reduced("prod", true) == Values{12, 54, 20, 7});
    CHECK(reduced("prod", false) == Values{6, 6, 5, 7});
    CHECK(reduced("mean", true) == Values{2, is_real ? 7.5 : 7, is_real ? 4.5 : 4, 7});
    CHECK(reduced("mean", false) == Values{2, 6, 5, 7});
    CHECK(reduced("amax", true) == Values{3, 9, 5, 7});
    CHECK(reduced("amax", false) == Values{3, 6, 5, 7});
    CHECK(reduced("amin", true) == Values{1, 6, 4, 7});
    CHECK(reduced("amin", false) == Values{1, 6, 5, 7});
  }
  const Tensor flags = vector({1, 0, 0}, kBool), at = ints({0, 0, 1}), more = vector({1, 0, 1}, kBool);
  CHECK(scatter_reduce(flags, 0, at, more, "prod").to_vector() == Values{0, 0, 0});
  CHECK(scatter_reduce(flags, 0, at, more, "amax").to_vector() == Values{1, 1, 0});
  CHECK(scatter_reduce(flags, 0, at, more, "sum", false).to_vector() == Values{1, 1, 0});
}

TEST_CASE("means of negative integers are rounded down, products of integers wrap around") {
  CHECK(scatter_reduce(ints({5, -7}), 0, ints({0, 1}), ints({0, 0}), "mean").to_vector() == Values{2, -4});
  const Tensor large = full({1}, int64_t{1} << 62, {kInt64});
  CHECK(scatter_reduce(large, 0, ints({0}), ints({4}), "prod").to_vector() == Values{0});
}

// In double, and rounded once.
TEST_CASE("partial results of float32 and 16-bit formats neither leave the range nor are rounded") {
  const Tensor zero = ints({0, 0, 0});
  for (const ScalarType dtype : {kFloat32, kBFloat16}) {
    const Tensor large = vector({std::ldexp(1, 127)}, dtype);
    CHECK(scatter_reduce(large, 0, zero, vector({std::ldexp(1, 127), 0, 0}, dtype), "mean").to_vector()[0] ==
          std::ldexp(1, 128) / 4);
    CHECK(scatter_reduce(large, 0, zero, vector({4, 0.25, 0.5}, dtype), "prod").to_vector()[0] ==
          std::ldexp(1, 126));
  }
  const Tensor one = vector({2048}, kFloat16);
  CHECK(scatter_reduce(one, 0, zero, vector({1, 1, 1}, kFloat16), "sum", true).to_vector()[0] ==
        2052);  // 2051
  CHECK(index_reduce(one, 0, zero, vector({1, 1, 2}, kFloat16), "mean").to_vector()[0] == 513);
}

TEST_CASE("NaN is both extremes, infinities are elements as others") {
  const Tensor x = vector({1, NAN, kInf}), index = ints({0, 0, 1, 2}), src = vector({NAN, 2, 3, -kInf});
  for (const char* how : {"amax", "amin"})
    for (const bool self : {true, false}) {
      const Values y = scatter_reduce(x, 0, index, src, how, self).to_vector();
      CHECK(std::isnan(y[0]));
      CHECK(std::isnan(y[1]) == self);
      CHECK(y[2] == (self && how[2] == 'a' ? kInf : -kInf));
    }
  CHECK(scatter_reduce(vector({5}), 0, ints({0}), vector({-kInf}), "amax", false).to_vector()[0] == -kInf);
  CHECK(scatter_reduce(ints({5}), 0, ints({0}), full({1}, INT64_MIN, {kInt64}), "amax", false)
            .item<int64_t>() == INT64_MIN);
}

// Against single elements: any layout of x, index and src, along each dim.
TEST_CASE("lines side by side, and an index in any layout") {
  for (const Shape& shape : {Shape{70, 37}, Shape{3, 50, 20}, Shape{5, 9, 16}, Shape{2, 30, 1}}) {
    const int d = shape.rank() - 2;
    const Tensor x = remainder(count(shape), 7) + 1, src = remainder(count(shape) * 31, 5) + 1;
    const Tensor index = remainder(count(shape, kInt64) * 7919, shape[d].raw());
    const Tensor line = select(transpose(index, -1, 0), 0, 0);
    const auto turned = [](const Tensor& t) { return contiguous(transpose(t, -2, -1)); };
    const auto strided = [](const Tensor& t) { return transpose(contiguous(transpose(t, -2, -1)), -2, -1); };
    for (const char* how : {"prod", "mean", "amax", "amin"}) {
      const Tensor want = scatter_reduce(x, d, index, src, how);
      CHECK(transpose(scatter_reduce(turned(x), -1, turned(index), turned(src), how), -2, -1).to_vector() ==
            want.to_vector());
      CHECK(scatter_reduce(strided(x), d, strided(index), strided(src), how).to_vector() == want.to_vector());
      if (shape.rank() > 2) continue;
      const Tensor wide = clone(expand_to(unsqueeze(line, 1), shape));
      CHECK(index_reduce(x, 0, line, src, how, false).to_vector() ==
            scatter_reduce(x, 0, wide, src, how, false).to_vector());
    }
  }
}

TEST_CASE("results do not depend on the number of threads") {
  const Tensor x = rand({200, 300}), index = to(floor(rand({200, 300}) * 200), kInt64),
               src = rand({200, 300});
  const int before = cpu::get_num_threads();
  for (const char* how : {"prod", "mean"}) {
    cpu::set_num_threads(1);
    const Values alone = scatter_reduce(x, 0, index, src, how).to_vector();
    cpu::set_num_threads(4);
    CHECK(scatter_reduce(x, 0, index, src, how).to_vector() == alone);
  }
  cpu::set_num_threads(before);
}

TEST_CASE("numbers, empty indices, an index smaller than its source") {
  const Tensor number = scalar_tensor(3.0), x = count({2, 3});
  CHECK(scatter_reduce(number, 0, ints({0, 0}), vector({2, 4}, kFloat32), "prod").sizes().empty());
  CHECK(index_reduce(number, 0, scalar_tensor(int64_t{0}, {kInt64}), scalar_tensor(5.0), "prod")
            .item<double>() == 15);
  CHECK(scatter_reduce(x, 0, ints({}), x, "prod", false).to_vector() == x.to_vector());
  CHECK(index_reduce(x, 1, ints({}), count({2, 0}), "amax", false).to_vector() == x.to_vector());
  CHECK(scatter_reduce(x, 1, tensor({1.0, 1.0}, {1, 2}, {kInt64}), x + 5, "prod").to_vector() ==
        Values{0, 30, 2, 3, 4, 5});
}

// One unit among the ties of a place; those of x count if they take part.
TEST_CASE("the gradient of an extreme is split evenly among ties") {
  const Tensor index = ints({0, 0, 0, 1});
  for (const bool self : {true, false}) {
    const Tensor x = vector({4, 1, 2}).requires_grad_(), src = vector({4, 4, 3, 5}).requires_grad_();
    const Tensors g = autograd::grad({sum(scatter_reduce(x, 0, index, src, "amax", self))}, {x, src});
    const double share = self ? 1.0 / 3 : 0.5;
    CHECK(g[0].to_vector() == Values{self ? share : 0, 0, 1});
    CHECK(g[1].to_vector() == Values{share, share, 0, 1});
  }
}

// 1e30 * 1e30 leaves the range of float32; the derivative does not.
TEST_CASE("the gradient of a product whose partial products leave the range") {
  const Tensor x = vector({1}, kFloat32).requires_grad_(),
               src = vector({1e30, 1e30, 1e-30}, kFloat32).requires_grad_();
  const Tensors g = autograd::grad({sum(scatter_reduce(x, 0, ints({0, 0, 0}), src, "prod"))}, {x, src});
  CHECK(g[0].to_vector()[0] == Approx(1e30).epsilon(1e-6));
  CHECK(g[1].to_vector()[1] == Approx(1).epsilon(1e-6));
  const Tensor infinite = vector({kInf, 2}).requires_grad_();
  const Tensors h =
      autograd::grad({sum(scatter_reduce(vector({3}), 0, ints({0, 0}), infinite, "prod"))}, {infinite});
  CHECK(h[0].to_vector() == Values{6, kInf});
}

TEST_CASE("errors of reductions at positions") {
  const Tensor x = count({2, 3}), index = ints({0, 1}), wide = tensor({0.0, 1.0}, {1, 2}, {kInt64});
  check_fails(Category::bad_argument, [&] { scatter_reduce(x, 0, wide, x, "max"); });
  check_fails(Category::bad_argument, [&] { index_reduce(x, 0, index, x, "sum"); });
  check_fails(Category::dtype_mismatch, [&] { scatter_reduce(x, 0, wide, x.to(kFloat32), "prod"); });
  check_fails(Category::dtype_mismatch, [&] { scatter_reduce(x, 0, wide.to(kFloat32), x, "prod"); });
  check_fails(Category::dtype_mismatch, [&] { index_reduce(x.to(kBool), 0, index, x.to(kBool), "mean"); });
  check_fails(Category::bad_dim, [&] { scatter_reduce(x, 2, wide, x, "prod"); });
  check_fails(Category::bad_dim, [&] { scatter_reduce(x, 0, index, x, "prod"); });
  check_fails(Category::bad_dim, [&] { index_reduce(x, 0, wide, x, "prod"); });
  check_fails(Category::shape_mismatch, [&] { scatter_reduce(x, 0, wide, count({2, 1}), "prod"); });
  check_fails(Category::shape_mismatch, [&] { scatter_reduce(count({2, 1}), 0, wide, x, "prod"); });
  check_fails(Category::shape_mismatch, [&] { index_reduce(x, 0, ints({0}), x, "prod"); });
  for (const double far : {2.0, -1.0}) {
    check_fails(Category::index_out_of_range, [&] { index_reduce(x, 0, ints({0, far}), x, "amax"); });
    check_fails(Category::index_out_of_range, [&] {
      scatter_reduce(x, 0, full({1, 1}, far, {kInt64}), x, "mean");
    });
  }
}

TEST_CASE("index_fill counts from the end, converts its value, and counts each element once") {
  const Tensor x = count({2, 3});
  CHECK(index_fill(x, -1, ints({-1, 0, 2}), 7).to_vector() == Values{7, 1, 7, 7, 4, 7});
  CHECK(index_fill(x, 0, scalar_tensor(int64_t{1}, {kInt64}), 7).to_vector() == Values{0, 1, 2, 7, 7, 7});
  CHECK(index_fill(x.to(kInt64), 0, ints({0}), 5.7).to_vector() == Values{5, 5, 5, 3, 4, 5});
  CHECK(index_fill(x.to(kInt64), 0, ints({0}), scalar_tensor(5.7)).dtype() == kInt64);
  CHECK(index_fill(x.to(kBFloat16), 0, ints({}), 5.7).dtype() == kBFloat16);
  CHECK(index_fill(x.to(kBool), 0, ints({0}), 0).dtype() == kBool);
  CHECK(index_fill(scalar_tensor(1.0), 0, ints({0}), 7).item<double>() == 7);
  const Tensor value = scalar_tensor(1.0, {kFloat64}).requires_grad_();
  CHECK(autograd::grad({sum(index_fill(x, 0, ints({1, 1, -1}), value))}, {value})[0].item<double>() == 3);
  check_fails(Category::index_out_of_range, [&] { index_fill(x, 0, ints({2}), 7); });
  check_fails(Category::bad_dim, [&] { index_fill(x, 0, count({1, 1}, kInt64), 7); });
  check_fails(Category::bad_dim, [&] { index_fill(x, 0, ints({0}), vector({7})); });
  check_fails(Category::bad_dim, [&] { index_fill(x, 2, ints({0}), 7); });
  check_fails(Category::dtype_mismatch, [&] { index_fill(x, 0, vector({0}), 7); });
}

TEST_CASE("put writes in order, or adds") {
  const Tensor x = count({2, 3}), index = ints({-1, 0, 0});
  CHECK(put(x, index, vector({7, 8, 9})).to_vector() == Values{9, 1, 2, 3, 4, 7});
  CHECK(put(x, index, vector({7, 8, 9}), true).to_vector() == Values{17, 1, 2, 3, 4, 12});
  CHECK(put(transpose(x, 0, 1), ints({1}), vector({7})).to_vector() == Values{0, 7, 1, 4, 2, 5});
  CHECK(put(x, ints({}), vector({})).to_vector() == x.to_vector());
  check_fails(Category::dtype_mismatch, [&] { put(x, index, ints({7, 8, 9})); });
  check_fails(Category::shape_mismatch, [&] { put(x, index, vector({7})); });
  check_fails(Category::index_out_of_range, [&] { put(x, ints({6}), vector({7})); });
  check_fails(Category::index_out_of_range, [&] { put(x, ints({-7}), vector({7})); });
}

TEST_CASE("isin promotes, takes numbers, and finds no NaN") {
  for (const ScalarType dtype : kAll) {
    const Tensor x = vector({0, 1, 2, 3, 4, 5, 6}, dtype);
    for (int64_t n = 0; n <= 7; ++n) {
      Values want;
      for (int i = 0; i < 7; ++i) want.push_back(i >= 7 - n);
      CHECK(isin(x, slice(flip(x, {0}), 0, 0, n)).to_vector() == want);
    }
  }
  const Tensor x = vector({1, NAN, 3, -kInf}, kFloat32);
  CHECK(isin(x, vector({NAN, -kInf, NAN, 3}, kFloat32)).to_vector() == Values{0, 0, 1, 1});
  CHECK(isin(x, 3).to_vector() == Values{0, 0, 1, 0});
  CHECK(isin(ints({2, 3}), 2.5).to_vector() == Values{0, 0});
  CHECK(isin(ints({2, 3}), vector({2, 2.5})).to_vector() == Values{1, 0});
  CHECK(isin(2, count({2, 3}, kInt64)).sizes().empty());
  CHECK(isin(transpose(count({2, 3}), 0, 1), vector({1, 3}), false, true).to_vector() ==
        Values{1, 0, 0, 1, 1, 1});
  CHECK(isin(vector({1, 0}, kBool), vector({1}, kBool)).to_vector() == Values{1, 0});
  check_fails(Category::bad_argument, [] { isin(1, 2); });
  CHECK(argwhere(vector({0, 2, 0, 3})).to_vector() == Values{1, 3});
  CHECK(index(count({2, 3}), {indexing::Ellipsis, ints({2, 0})}).to_vector() == Values{2, 0, 5, 3});
}

TEST_CASE("recorded functions of positions keep their sizes as symbols") {
  FunctionCache cache(FunctionKind::function, {.dynamic = DynamicSizes::always});
  const auto f = [](const Tensors& t) {
    const Tensor &x = t[0], &i = t[1];
    Tensors out = {index_fill(x, 0, i, 7), isin(x, select(x, 0, 0)), put(x, i, select(x, 1, 0))};
    for (const char* how : {"prod", "mean", "amax"}) out.push_back(index_reduce(x, 0, i, x, how));
    return out;
  };
  for (const int64_t n : {3, 5, 8}) {
    const Tensors in = {count({n, n + 2}), remainder(count({n}, kInt64), 2)}, got = cache.run(f, in),
                  want = f(in);
    for (size_t k = 0; k < want.size(); ++k) CHECK(got[k].to_vector() == want[k].to_vector());
  }
  CHECK(cache.stats().captures == 1);
}

}  // namespace
}  // namespace retrograd
