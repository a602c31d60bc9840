// Sort, argsort and topk on a device against the CPU: dtypes, dims, layouts, equal entries, NaN and zeros of both
// signs, lines from which teams of every size choose, in one round or more, and lines that are sorted by the library:
// with keys of every width, singly and in groups.
#include <cmath>
#include <limits>
#include <random>

#include "cuda/on_host/scheduler.h"
#include "ops/index_ops.h"
#include "ops/sort.h"
#include "tests/cuda/device_on_host.h"

using namespace retrograd;

namespace {

constexpr ScalarType kAll[] = {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kUInt8, kBool};

std::mt19937 random_bits(9);

// Few different numbers, so that many are equal.
Tensor numbers(const IntArray& size, ScalarType dtype) {
  int64_t n = 1;
  for (int64_t s : size) n *= s;
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values) {
    v = static_cast<double>(random_bits() % 50) - (dtype == kUInt8 || dtype == kBool ? 0 : 25);
    if (is_floating(dtype) && random_bits() % 20 == 0)
      v = random_bits() % 3 == 0 ? NAN : random_bits() % 2 ? INFINITY : -0.0;
  }
  return tensor(values, size, dtype);
}

// Bits that differ in every digit.
Tensor spread(const IntArray& size) {
  int64_t n = 1;
  for (int64_t s : size) n *= s;
  std::vector<int64_t> values(static_cast<size_t>(n));
  for (int64_t& v : values)
    v = static_cast<int64_t>(random_bits()) * std::numeric_limits<int32_t>::max() *
        (random_bits() % 2 ? 1 : -1);
  return clone(from_blob(values.data(), size, {kInt64}));
}

void compare(const Tensor& x, int64_t k, int64_t dim, bool descending) {
  INFO(name(x.dtype()) << " " << to_string(x.impl().shape()) << ", " << k << " along " << dim
                       << (descending ? ", descending" : ""));
  const ValuesAndIndices expected = topk(x, k, dim, descending),
                         found = topk(with_layout_on_device(x), k, dim, descending);
  expect_same(expected.values, found.values);
  expect_same(expected.indices, found.indices);
}

// Of a line on the device.
std::vector<double> order(const std::vector<double>& line, ScalarType dtype, bool descending) {
  return argsort(tensor(line, {static_cast<int64_t>(line.size())}, dtype).to(kCUDA), 0, descending)
      .to_vector();
}

}  // namespace

TEST_CASE("every dtype, dim and layout, in both directions") {
  device_on_host();
  for (ScalarType dtype : kAll)
    for (bool descending : {false, true}) {
      const Tensor x = numbers({3, 17, 5}, dtype);
      for (const Tensor& y : {x, x.transpose(0, 2), x.narrow(1, 2, 13)})
        for (int64_t dim : {0, 1, 2}) {
          compare(y, y.size(dim), dim, descending);
          compare(y, 2, dim, descending);
        }
    }
}

TEST_CASE("lines of every kind of length") {
  device_on_host();
  for (int64_t n : {1, 2, 32, 33, 128, 129, 512, 513, 2048, 2049, 5000}) {
    compare(numbers({2, n}, kFloat32), n, 1, false);
    compare(numbers({n, 2}, kFloat64), n, 0, true);
    compare(numbers({3, n}, kInt64).narrow(0, 1, 2), (n + 2) / 3, 1, true);
    compare(numbers({2, n}, kFloat16), 1, 1, true);
    compare(spread({2, n}), n, 1, false);
  }
  compare(numbers({2, 5}, kFloat32), 0, 1, true);
  compare(numbers({0, 5}, kFloat32), 5, 1, true);
  compare(numbers({5, 0}, kInt32), 0, 1, true);
  compare(numbers({}, kFloat32), 1, 0, true);
}

TEST_CASE("long lines of every dtype, one and many") {
  device_on_host();
  for (ScalarType dtype : kAll) {
    compare(numbers({2500}, dtype), 2500, 0, false);
    compare(numbers({2500, 40}, dtype), 2500, 0, true);
    compare(numbers({3, 2500, 3}, dtype).transpose(0, 1), 1000, 0, false);
  }
}

TEST_CASE("many short lines") {
  device_on_host();
  compare(numbers({3000, 3}, kInt32), 3, 1, false);
  compare(numbers({70'000, 5}, kFloat32), 2, 1, true);
  compare(numbers({4, 9000}, kFloat64), 4, 0, false);
  compare(numbers({300, 100}, kBFloat16), 8, 1, true);
}

TEST_CASE("few wanted of long lines are chosen in rounds") {
  device_on_host();
  const Tensor x = numbers({2, 100'000}, kFloat32), y = spread({40'000});
  for (int64_t k : {1, 10, 256, 257}) {
    compare(x, k, 1, true);
    compare(y, k, 0, false);
  }
  compare(full({30'000}, NAN, {kFloat32}), 100, 0, false);  // as many of the largest key as there are
}

TEST_CASE("lines of a million, which are sorted one by one") {
  device_on_host();
  compare(numbers({2, 1'100'000}, kFloat16), 1'100'000, 1, false);
}

TEST_CASE("long lines of bool are parted") {
  device_on_host();
  const Tensor some = gt(numbers({5000, 3}, kInt32), 0);
  for (const Tensor& x : {some.narrow(1, 1, 1).reshape({5000}), some.select(1, 1), zeros({5000}, {kBool}),
                          ones({2049}, {kBool})})
    for (bool descending : {false, true})
      for (int64_t k : {int64_t{257}, int64_t{2047}, x.size(0)}) compare(x, k, 0, descending);
}

TEST_CASE("numbers at the ends of integers") {
  device_on_host();
  int64_t values[] = {INT64_MAX, INT64_MIN, 0, -1, 1, INT64_MIN, INT64_MAX};
  const Tensor x = clone(from_blob(values, {7}, {kInt64}));
  for (bool descending : {false, true}) {
    compare(x, 7, 0, descending);
    compare(x.to(kInt32), 7, 0, descending);
    compare(repeat(x, {300}), 2100, 0, descending);
  }
}

TEST_CASE("nan is the largest, zeros of both signs are equal, equal ones stay in order") {
  device_on_host();
  const std::vector<double> line{0.0, NAN, -0.0, INFINITY, -INFINITY, -NAN, 0.0, -1.0};
  for (ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    INFO(name(dtype));
    CHECK(order(line, dtype, false) == std::vector<double>{4, 7, 0, 2, 6, 3, 1, 5});
    CHECK(order(line, dtype, true) == std::vector<double>{1, 5, 3, 0, 2, 6, 7, 4});
  }
  const ValuesAndIndices found = sort(tensor(line, {8}, kFloat32).to(kCUDA));
  CHECK(std::signbit(found.values.to_vector()[3]));  // the elements themselves, not keys
}

TEST_CASE("all equal: places are in order, by either way") {
  device_on_host();
  for (int64_t n : {100, 2048, 7000})
    for (bool descending : {false, true})
      expect_same(arange(0, n, 1, {kInt64}), argsort(zeros({n}, {kUInt8}).to(kCUDA), 0, descending));
}

TEST_CASE("sums by target, of few and of many positions") {
  device_on_host();
  for (int64_t n : {7, 2048, 6000}) {
    INFO(n);
    const Tensor x = randn({50, 3}), source = randn({n, 3});
    const Tensor index = numbers({n}, kUInt8).to(kInt64);
    expect_same(index_add(x, 0, index, source), index_add(x.to(kCUDA), 0, index.to(kCUDA), source.to(kCUDA)),
                0);
  }
}

TEST_CASE("bits of sorts do not depend on the order of blocks and threads") {
  device_on_host();
  for (int64_t k : {5000, 20}) {
    const Tensor x = numbers({5000}, kFloat32).to(kCUDA);
    const std::vector<double> first = topk(x, k, 0).indices.to_vector();
    for (unsigned seed : {1u, 2u}) {
      on_host::set_seed(seed);
      CHECK(topk(x, k, 0).indices.to_vector() == first);
    }
    on_host::set_seed(0);
  }
}

TEST_CASE("sorts within a compiled step") {
  device_on_host();
  FunctionCache cache{FunctionKind::step};
  for (int i = 0; i < 4; ++i) {
    const Tensor x = numbers({2, 6000}, kFloat64), y = numbers({2, 6000}, kFloat32);
    const Tensors found = cache.run(
        [](const Tensors& a) {
          return Tensors{sort(a[0]).values, topk(a[1], 30).indices};
        },
        {x.to(kCUDA), y.to(kCUDA)});
    INFO(cache.segments());
    expect_same(sort(x).values, found[0]);
    expect_same(topk(y, 30).indices, found[1]);
  }
  CHECK(cache.stats().launches.graph_launches > 0);
}
