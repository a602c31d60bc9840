// Scans on a device against the CPU: dims, directions, layouts, long rows that are split, any order of
// blocks.
#include "ops/scan.h"

#include <algorithm>

#include "cuda/on_host/scheduler.h"
#include "ops/cumulative.h"
#include "tests/cuda/against_cpu.h"

using namespace retrograd;

namespace {

// Near 1, so that long products stay in range.
Tensor factors(const Tensor& x) { return is_floating(x.dtype()) ? x * 0.1 + 1 : x; }

void try_all(const Tensor& x, int64_t dim) {
  device_on_host();
  const Tensor b = random_numbers(x.sizes(), x.dtype());
  // A sum near 0 has the rounding errors of all the sums before it.
  const double scale = std::max(50.0, static_cast<double>(x.numel()) / 20);
  for (bool reverse : {false, true}) {
    INFO("along " << dim << ", reverse " << reverse);
    for (bool exclusive : {false, true}) {
      against_cpu<ops::CumSum>({x}, {dim, reverse, exclusive}, 1, scale);
      against_cpu<ops::CumProd>({factors(x)}, {dim, reverse, exclusive}, 1, scale);
    }
    against_cpu<ops::Recurrence>({is_floating(x.dtype()) ? x * 0.5 : x, b}, {dim, reverse, false}, 1, scale);
    against_cpu<ops::Shift>({x}, {dim, reverse, false});
  }
}

}  // namespace

TEST_CASE("scans: every dim of several layouts") {
  for (ScalarType dtype : {kFloat32, kFloat64, kBFloat16, kInt64}) {
    const Tensor x = random_numbers({5, 37, 6}, dtype);
    for (const Tensor& y : {x, x.transpose(0, 2), x.narrow(1, 1, 33), x.narrow(1, 0, 0)})
      for (int64_t dim : {0, 1, 2}) try_all(y, dim);
  }
}

TEST_CASE("cumulative extremes and sums of exponentials: dims, lengths, ties and NaN") {
  device_on_host();
  for (ScalarType dtype : {kFloat32, kFloat64, kBFloat16, kInt64})
    for (const Tensor& x :
         {random_numbers({5, 37, 6}, dtype, dtype != kInt64), random_numbers({2, 3000, 1}, dtype)})
      for (int64_t dim : {0, 1, 2}) {
        against_cpu<ops::CumMax>({x}, {dim}, 2);
        against_cpu<ops::CumMin>({x}, {dim}, 2);
        if (is_floating(dtype)) against_cpu<ops::LogCumSumExp>({x}, {dim}, 1, 50);
      }
}

TEST_CASE("scans: rows of every length") {
  for (int64_t n : {1, 2, 5, 33, 128, 129, 1023, 1024, 1025, 3000})
    for (ScalarType dtype : {kFloat32, kFloat64}) try_all(random_numbers({2, n}, dtype), 1);
}

TEST_CASE("scans: rows that are split, along either dim") {
  try_all(random_numbers({2, 20'000}, kFloat64), 1);
  try_all(random_numbers({20'000, 2}, kFloat32), 0);
  try_all(random_numbers({9'000, 1200}, kInt64).narrow(1, 0, 2), 0);
}

TEST_CASE("scans: few long rows of integers, which are scanned over the whole device") {
  constexpr int64_t n = (1 << 18) + 77;
  device_on_host();
  for (bool reverse : {false, true})
    for (bool exclusive : {false, true}) {
      against_cpu<ops::CumSum>({random_numbers({n}, kInt64)}, {0, reverse, exclusive});
      against_cpu<ops::CumProd>({random_numbers({3, n}, kInt64).narrow(0, 1, 2)}, {1, reverse, exclusive});
      against_cpu<ops::CumSum>({random_numbers({n, 2, 2}, kInt64).transpose(1, 2)}, {0, reverse, exclusive});
    }
  against_cpu<ops::CumSum>({random_numbers({n}, kInt32)}, {0, true, false});
  against_cpu<ops::CumSum>({full({n}, INT64_MAX / 3, {kInt64})}, {0, false, true});
  against_cpu<ops::CumProd>({full({n}, 3, {kInt64})}, {0, false, false});
}

TEST_CASE("scans: a row of a million floats") {
  device_on_host();
  const Tensor x = random_numbers({1'000'003}, kFloat32);
  against_cpu<ops::CumSum>({x}, {0, true, true}, 1, 50);
  against_cpu<ops::CumProd>({x * 0.1 + 1}, {0, false, false}, 1, 50);
  against_cpu<ops::Recurrence>({x * 0.5, x}, {0, true, false}, 1, 50);
}

TEST_CASE("scans: many rows") {
  try_all(random_numbers({20'000, 3}, kFloat32), 1);
  try_all(random_numbers({3, 20'000}, kInt32), 0);
  try_all(random_numbers({700, 50}, kFloat16), 1);
}

TEST_CASE("scans: within a compiled step") {
  device_on_host();
  FunctionCache cache{FunctionKind::step};
  for (int i = 0; i < 4; ++i) {
    const Tensor x = random_numbers({300'000}, kInt64), y = random_numbers({2, 9000}, kFloat32);
    const Tensors found = cache.run(
        [](const Tensors& a) {
          return Tensors{cumsum(a[0], 0), cumsum(a[1], 1)};
        },
        {x.to(kCUDA), y.to(kCUDA)});
    INFO(cache.segments());
    expect_same(cumsum(x, 0), found[0]);
    expect_same(cumsum(y, 1), found[1], 50);
  }
  CHECK(cache.stats().launches.graph_launches > 0);
}

TEST_CASE("scans: no dims; NaN and infinities; zeros in a product; integers wrap around") {
  try_all(random_numbers({}, kFloat32), 0);
  device_on_host();
  against_cpu<ops::CumSum>({random_numbers({20, 70}, kFloat32, true)}, {1, false, false});
  against_cpu<ops::CumProd>({tensor({2.0, 0.0, 3.0, 1.0, -1.0, 5.0}, {2, 3})}, {1, true, true});
  against_cpu<ops::CumSum>({full({40}, INT64_MAX / 3, {kInt64})}, {0, false, false});
}

TEST_CASE("scans: bits do not depend on the order of blocks and threads") {
  device_on_host();
  const Tensor x = random_numbers({2, 20'000}, kFloat32).to(kCUDA);
  const std::vector<double> first = cumsum(x, 1).to_vector();
  for (unsigned seed : {1u, 2u}) {
    on_host::set_seed(seed);
    CHECK(cumsum(x, 1).to_vector() == first);
  }
  on_host::set_seed(0);
}

TEST_CASE("scans: derivatives on the device") {
  device_on_host();
  const Tensor x = random_numbers({4, 9}, kFloat64);
  const auto gradient = [](Tensor v) {
    v = v.detach();
    v.requires_grad_();
    sum(cumprod(v, 1) * cumsum(v, 0)).backward();
    return v.grad();
  };
  expect_same(gradient(x), gradient(x.to(kCUDA)), 100);
}
