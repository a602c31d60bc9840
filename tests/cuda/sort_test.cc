// Sort, argsort and topk on a device against the CPU: dtypes, dims, layouts, equal entries, NaN, lines that
// one block sorts and longer ones.
#include <random>

#include "cuda/on_host/scheduler.h"
#include "ops/sort.h"
#include "tests/cuda/device_on_host.h"

using namespace retrograd;

namespace {

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

void compare(const Tensor& x, int64_t k, int64_t dim, bool descending) {
  const SortResult expected = topk(x, k, dim, descending),
                   found = topk(with_layout_on_device(x), k, dim, descending);
  expect_same(expected.values, found.values);
  expect_same(expected.indices, found.indices);
}

}  // namespace

TEST_CASE("every dtype, dim and layout, in both directions") {
  device_on_host();
  for (ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kUInt8, kBool})
    for (bool descending : {false, true}) {
      INFO(name(dtype) << (descending ? " descending" : ""));
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
  for (int64_t n : {1, 2, 2047, 2048, 2049, 5000, 9000}) {
    INFO(n);
    compare(numbers({2, n}, kFloat32), n, 1, false);
    compare(numbers({n, 2}, kFloat64), n, 0, true);
    compare(numbers({2, n}, kInt64), (n + 2) / 3, 1, true);
    compare(numbers({2, n}, kFloat16), 1, 1, true);
  }
  compare(numbers({3000, 3}, kInt32), 3, 1, false);  // several lines a block
  compare(numbers({2, 5}, kFloat32), 0, 1, true);
  compare(numbers({0, 5}, kFloat32), 5, 1, true);
  compare(numbers({}, kFloat32), 1, 0, true);
}

TEST_CASE("numbers at the ends of integers") {
  device_on_host();
  int64_t values[] = {INT64_MAX, INT64_MIN, 0, -1, 1, INT64_MIN, INT64_MAX};
  const Tensor x = clone(from_blob(values, {7}, {kInt64}));
  for (bool descending : {false, true}) compare(x, 7, 0, descending);
}

TEST_CASE("bits of sorts do not depend on the order of blocks and threads") {
  device_on_host();
  const Tensor x = numbers({5000}, kFloat32).to(kCUDA);
  const std::vector<double> first = argsort(x).to_vector();
  for (unsigned seed : {1u, 2u}) {
    on_host::set_seed(seed);
    CHECK(argsort(x).to_vector() == first);
  }
  on_host::set_seed(0);
}
