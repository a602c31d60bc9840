// Copies in another order on a device against the CPU: cat, flip, roll, triangles, padding of every mode and
// its transpose.
#include <random>

#include "cuda/on_host/scheduler.h"
#include "ops/join.h"
#include "ops/rearrange.h"
#include "tests/cuda/device_on_host.h"

using namespace retrograd;

namespace {

std::mt19937 random_bits(5);

Tensor numbers(const IntArray& size, ScalarType dtype) {
  int64_t n = 1;
  for (int64_t s : size) n *= s;
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values)
    v = is_integral(dtype, true) ? static_cast<double>(random_bits() % 2)
                                 : std::uniform_real_distribution<double>(-2, 2)(random_bits);
  return tensor(values, size, dtype);
}

const ScalarType kAll[] = {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kUInt8, kBool};

// f on the CPU and on the device, for layouts of x.
template <class F>
void compare(const Tensor& x, const F& f, double scale = 1) {
  NoGradGuard no_grad;
  for (const Tensor& y : {x, x.transpose(0, x.dim() - 1), x.narrow(0, 1, x.size(0) - 1)})
    expect_same(f(y), f(with_layout_on_device(y)), scale);
}

}  // namespace

TEST_CASE("cat along every dim, of layouts, with operands without elements") {
  device_on_host();
  for (ScalarType dtype : kAll)
    for (int64_t dim : {0, 1, 2})
      compare(numbers({4, 5, 4}, dtype), [&](const Tensor& x) {
        return cat({x, x.narrow(dim, 1, 2), x.narrow(dim, 0, 0), x}, dim);
      });
  compare(numbers({4, 5}, kFloat32), [](const Tensor& x) { return stack({x, x}, 1); });
}

TEST_CASE("flip and roll") {
  device_on_host();
  for (ScalarType dtype : {kFloat32, kFloat16, kInt64, kBool}) {
    compare(numbers({4, 5, 3}, dtype), [](const Tensor& x) { return flip(x, {0, 2}); });
    compare(numbers({4, 5, 3}, dtype), [](const Tensor& x) { return flip(x, {1}); });
    compare(numbers({4, 5, 3}, dtype), [](const Tensor& x) { return roll(x, {1, -2}, {0, 1}); });
  }
  compare(numbers({4, 5, 3}, kFloat32), [](const Tensor& x) { return flip(x.narrow(1, 0, 0), {0, 1}); });
}

TEST_CASE("triangles") {
  device_on_host();
  for (ScalarType dtype : kAll)
    for (int64_t diagonal : {-100, -2, 0, 1, 100}) {
      compare(numbers({3, 7, 5}, dtype), [&](const Tensor& x) { return tril(x, diagonal); });
      compare(numbers({3, 7, 5}, dtype), [&](const Tensor& x) { return triu(x, diagonal); });
    }
  compare(numbers({3, 7, 5}, kFloat32), [](const Tensor& x) { return triu(x.narrow(1, 0, 0)); });
}

TEST_CASE("padding and its transpose") {
  device_on_host();
  const std::vector<std::pair<IntList, IntList>> amounts = {{{0, 0, 2}, {0, 0, 3}},  {{1, 0, 0}, {2, 0, 0}},
                                                            {{1, 2, 3}, {2, 1, 0}},  {{-1, 0, 2}, {1, 0, -2}},
                                                            {{0, -2, 0}, {0, 2, 0}}, {{0, 0, 0}, {0, 0, 0}}};
  for (ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64})
    for (int64_t mode : {ops::PadAttrs::reflect, ops::PadAttrs::replicate, ops::PadAttrs::circular})
      for (const auto& [before, after] : amounts) {
        INFO("mode " << mode << " before " << before[0] << " " << before[1] << " " << before[2]);
        Tensor padded;
        compare(numbers({5, 4, 5}, dtype), [&](const Tensor& x) {
          ops::PadAttrs attrs{before, after, mode};
          return padded = emit(ops::info<ops::Pad>, {x}, &attrs);
        });
        ops::PadBackward::Attrs attrs{{before, after, mode}, {5, 4, 5}};
        Shape large;
        for (int d = 0; d < 3; ++d) large.push_back(attrs.size[d] + before[d] + after[d]);
        const Tensor g = numbers({large[2].raw(), large[1].raw(), large[0].raw()}, dtype).transpose(0, 2);
        expect_same(emit(ops::info<ops::PadBackward>, {g}, &attrs),
                    emit(ops::info<ops::PadBackward>, {with_layout_on_device(g)}, &attrs), 4);
      }
  compare(numbers({4, 5}, kFloat32), [](const Tensor& x) { return pad(x, {1, 2, -1, 1}, "constant", 3.0); });
}

TEST_CASE("bits of the transpose of padding do not depend on the order of blocks") {
  device_on_host();
  ops::PadBackward::Attrs attrs{{{3, 3}, {3, 3}, ops::PadAttrs::circular}, {30, 30}};
  const Tensor g = numbers({36, 36}, kFloat32).to(kCUDA);
  const auto first = emit(ops::info<ops::PadBackward>, {g}, &attrs).to_vector();
  for (unsigned seed : {1u, 2u}) {
    on_host::set_seed(seed);
    CHECK(emit(ops::info<ops::PadBackward>, {g}, &attrs).to_vector() == first);
  }
  on_host::set_seed(0);
}
