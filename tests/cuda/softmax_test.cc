// Softmax, log-softmax and their backward ops on a device against the CPU.
#include "ops/softmax.h"

#include "cuda/on_host/scheduler.h"
#include "tests/cuda/against_cpu.h"

using namespace retrograd;

namespace {

// Forward, and backward at its result with a gradient of another layout.
template <class Forward, class Backward>
void try_pair(const Tensor& x, int64_t dim) {
  INFO("along " << dim);
  const Tensor y = against_cpu<Forward>({x}, {dim})[0];
  against_cpu<Backward>({x, y}, {dim});
}

void try_all(const Tensor& x, int64_t dim) {
  device_on_host();
  try_pair<ops::Softmax, ops::SoftmaxBackward>(x, dim);
  try_pair<ops::LogSoftmax, ops::LogSoftmaxBackward>(x, dim);
}

}  // namespace

TEST_CASE("softmax: every dim of several layouts") {
  for (ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    const Tensor x = random_numbers({5, 37, 6}, dtype);
    for (const Tensor& y : {x, x.transpose(0, 2), x.narrow(1, 1, 33), expand(x.narrow(1, 0, 1), {5, 4, 6})})
      for (int64_t dim : {0, 1, 2}) try_all(y, dim);
  }
}

TEST_CASE("softmax: rows of every length") {
  for (int64_t n : {1, 2, 3, 4, 31, 32, 33, 127, 128, 500, 1023, 1024, 1100, 4999})
    for (ScalarType dtype : {kFloat32, kFloat64, kBFloat16}) try_all(random_numbers({3, n}, dtype), 1);
}

TEST_CASE("softmax: no rows, empty rows, no dims") {
  for (const IntArray& size : {IntArray{0, 5}, IntArray{5, 0}, IntArray{0, 0}}) {
    try_all(random_numbers(size, kFloat32), 0);
    try_all(random_numbers(size, kFloat32), 1);
  }
  try_all(random_numbers({}, kFloat32), 0);
}

TEST_CASE("softmax: infinities, NaN, large numbers") {
  const double inf = INFINITY;
  try_all(tensor({-inf, 1.0, 2.0, -inf, -inf, -inf, inf, 0.0, 1.0, 1e38, -1e38, 3e38, NAN, 1.0, 0.0}, {5, 3}),
          1);
  try_all(random_numbers({30, 50}, kFloat32, true), 1);
}

TEST_CASE("softmax: bits depend on neither the order of threads nor the layout") {
  device_on_host();
  const Tensor x = random_numbers({3, 2000}, kFloat32).to(kCUDA);
  const std::vector<double> first = softmax(x, 1).to_vector();
  for (unsigned seed : {1u, 2u, 3u}) {
    on_host::set_seed(seed);
    CHECK(softmax(x, 1).to_vector() == first);
  }
  on_host::set_seed(0);
  const Tensor wide = random_numbers({3, 2001}, kFloat32);
  CHECK(softmax(with_layout_on_device(wide.narrow(1, 1, 2000)), 1).to_vector() ==
        softmax(wide.narrow(1, 1, 2000).contiguous().to(kCUDA), 1).to_vector());
}

TEST_CASE("softmax: derivatives on the device") {
  device_on_host();
  const Tensor x = random_numbers({4, 9}, kFloat64), on_device = x.to(kCUDA);
  const auto gradient = [](Tensor v) {
    v.requires_grad_();
    sum(softmax(v, 1) * log_softmax(v, 1)).backward();
    return v.grad();
  };
  expect_same(gradient(x), gradient(on_device), 4);
}
