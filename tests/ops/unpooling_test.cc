// max_unpool and fractional_max_pool: values against plain formulas, derivatives, 16 bits, sizes that are symbols,
// errors. PyTorch's numbers are in tests/nn/layers_test.cc.
#include <catch2/catch.hpp>

#include <cmath>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/same_bits.h"

namespace rg = retrograd;
using rg::Category;
using rg::category_of;
using rg::Tensor;
using rg::Tensors;
using rg::testing::same_bits;

namespace {

Tensor wave(const rg::Shape& shape) {
  const Tensor i = rg::arange(rg::zeros(shape).numel()).to(rg::kFloat64);
  return rg::reshape(rg::sin(i * 1.7) + i * 0.01, shape);
}

TEST_CASE("max_unpool writes the elements of a pool to their places") {
  const Tensor x = wave({2, 3, 5, 7});
  const auto [values, indices] = rg::max_pool2d_with_indices(x, 2);
  const Tensor y = rg::max_unpool2d(values, indices, 2, {}, 0, {5, 7});
  CHECK(y.sizes() == rg::IntArray{2, 3, 5, 7});
  CHECK(same_bits(rg::gather(y.view({2, 3, 35}), 2, indices.view({2, 3, 6})), values.view({2, 3, 6})));
  CHECK(rg::count_nonzero(y).item<int64_t>() == 2 * 3 * 6);
  CHECK(same_bits(y, rg::max_unpool2d(values, indices, 2, {}, 0, {2, 3, 5, 7})));
}

TEST_CASE("without an output_size max_unpool gives the least size that has all windows") {
  const Tensor x = wave({2, 3, 4, 6});
  const auto [values, indices] = rg::max_pool2d_with_indices(x, 2);
  CHECK(rg::max_unpool2d(values, indices, 2).sizes() == rg::IntArray{2, 3, 4, 6});
  CHECK(rg::max_unpool2d(values.select(0, 1), indices.select(0, 1), 2).sizes() == rg::IntArray{3, 4, 6});
}

TEST_CASE("derivatives of max_unpool and fractional_max_pool") {
  const Tensor indices = rg::max_pool1d_with_indices(wave({2, 2, 8}), 2).indices;
  const auto unpool = [&](const Tensors& x) { return Tensors{rg::max_unpool1d(x[0], indices, 2)}; };
  CHECK(rg::autograd::gradcheck(unpool, {wave({2, 2, 4}).requires_grad_()}));
  const Tensor samples = rg::rand({2, 2, 2}).to(rg::kFloat64);
  const auto pool = [&](const Tensors& x) {
    return Tensors{rg::fractional_max_pool2d(x[0], 2, {.output_size = {3, 4}}, samples)};
  };
  CHECK(rg::autograd::gradcheck(pool, {wave({2, 2, 6, 7}).requires_grad_()}));
}

// The places at which windows begin along a dim of `in` elements.
std::vector<int64_t> starts(double sample, int64_t in, int64_t count, int64_t kernel) {
  const double alpha = static_cast<double>(in - kernel) / static_cast<double>(count - 1);
  std::vector<int64_t> all;
  for (int64_t i = 0; i + 1 < count; ++i)
    all.push_back(static_cast<int64_t>((static_cast<double>(i) + sample) * alpha) -
                  static_cast<int64_t>(sample * alpha));
  all.push_back(in - kernel);
  return all;
}

TEST_CASE("a fractional pool takes the largest elements of its windows") {
  const Tensor x = wave({1, 1, 9, 8}), samples = rg::tensor({0.3, 0.8}, rg::kFloat64).view({1, 1, 2});
  const auto [values, indices] =
      rg::fractional_max_pool2d_with_indices(x, {2, 3}, {.output_size = {5, 3}}, samples);
  const std::vector<double> all = x.to_vector(), got = values.to_vector();
  const std::vector<int64_t> rows = starts(0.8, 9, 5, 2), columns = starts(0.3, 8, 3, 3);
  for (size_t i = 0; i < 5; ++i)
    for (size_t j = 0; j < 3; ++j) {
      double largest = -INFINITY;
      for (int64_t r = rows[i]; r < rows[i] + 2; ++r)
        for (int64_t c = columns[j]; c < columns[j] + 3; ++c)
          largest = std::max(largest, all[static_cast<size_t>(8 * r + c)]);
      CHECK(got[3 * i + j] == largest);
    }
  CHECK(same_bits(rg::gather(x.view({1, 1, 72}), 2, indices.view({1, 1, 15})), values.view({1, 1, 15})));
}

TEST_CASE("a fractional pool draws its places: each call other ones, within the operand") {
  const Tensor x = rg::arange(100).to(rg::kFloat32).view({1, 1, 10, 10});
  const auto draw = [&] { return rg::fractional_max_pool2d_with_indices(x, 2, {.output_ratio = 0.6}); };
  bool differ = false;
  const Tensor first = draw().values;
  for (int i = 0; i < 10; ++i) {
    const auto [values, indices] = draw();
    CHECK(values.sizes() == rg::IntArray{1, 1, 6, 6});
    CHECK(same_bits(values, indices.to(rg::kFloat32)));
    CHECK(values.max().item<double>() == 99);
    differ = differ || !same_bits(values, first);
  }
  CHECK(differ);
}

TEST_CASE("16 bits: elements are copied, places are those of float32") {
  const Tensor x = wave({1, 2, 20, 20}), samples = rg::rand({1, 2, 2});
  const auto pool = [&](const Tensor& operand) {
    return rg::fractional_max_pool2d_with_indices(operand, 3, {.output_size = 11}, samples);
  };
  const Tensor narrow = x.to(rg::kBFloat16);
  const auto [values, indices] = pool(narrow);
  const auto [wide_values, wide_indices] = pool(narrow.to(rg::kFloat32));
  CHECK(values.dtype() == rg::kBFloat16);
  CHECK(same_bits(values.to(rg::kFloat32), wide_values));
  CHECK(same_bits(indices, wide_indices));
}

TEST_CASE("recordings serve other sizes") {
  auto unpool = rg::compile(
      [](const Tensor& x) {
        const auto [values, indices] = rg::max_pool2d_with_indices(x, 2);
        return rg::max_unpool2d(values, indices, 2);
      },
      {.dynamic = rg::DynamicSizes::always});
  auto pool = rg::compile(
      [](const Tensor& x, const Tensor& samples) {
        return rg::fractional_max_pool2d(x, 2, {.output_size = {3, 4}}, samples);
      },
      {.dynamic = rg::DynamicSizes::always});
  for (const int64_t n : {6, 8, 12}) {
    const Tensor x = wave({2, 3, n, n + 2}), samples = rg::sigmoid(wave({2, 3, 2}));
    const auto [values, indices] = rg::max_pool2d_with_indices(x, 2);
    CHECK(same_bits(unpool(x), rg::max_unpool2d(values, indices, 2)));
    CHECK(same_bits(pool(x, samples), rg::fractional_max_pool2d(x, 2, {.output_size = {3, 4}}, samples)));
  }
  CHECK(unpool.stats().captures == 1);
  CHECK(pool.stats().captures == 1);
}

TEST_CASE("max_unpool: errors") {
  const Tensor x = rg::ones({1, 2, 3}), indices = rg::zeros({1, 2, 3}, {rg::kInt64});
  const auto unpool = [&](const Tensor& i, const rg::IntList& size) {
    return category_of([&] { rg::max_unpool1d(x, i, 2, 2, 0, size); });
  };
  CHECK(rg::max_unpool1d(x, indices, 2, 2, 0, {7}).sizes() == rg::IntArray{1, 2, 7});
  CHECK(unpool(indices, {8}) == Category::bad_argument);
  CHECK(unpool(indices, {4}) == Category::bad_argument);
  CHECK(unpool(indices, {1, 2}) == Category::bad_argument);
  CHECK(unpool(indices.narrow(2, 0, 2), {}) == Category::shape_mismatch);
  CHECK(unpool(indices + 6, {}) == Category::index_out_of_range);
  CHECK(unpool(indices.to(rg::kFloat32), {}) == Category::dtype_mismatch);
  CHECK(category_of([&] { rg::max_unpool2d(rg::ones({3, 3}), indices, 2); }) == Category::bad_dim);
}

TEST_CASE("fractional_max_pool: errors") {
  const Tensor x = rg::ones({1, 2, 6, 6});
  const auto pool = [&](const rg::FractionalSize& size, const Tensor& samples) {
    return category_of([&] { rg::fractional_max_pool2d(x, 2, size, samples); });
  };
  CHECK(pool({}, {}) == Category::bad_argument);
  CHECK(pool({.output_size = 3, .output_ratio = 0.5}, {}) == Category::bad_argument);
  CHECK(pool({.output_size = 6}, {}) == Category::bad_argument);
  CHECK(pool({.output_ratio = 1.0}, {}) == Category::bad_argument);
  CHECK(pool({.output_size = 3}, rg::ones({1, 2, 3})) == Category::shape_mismatch);
}

}  // namespace
