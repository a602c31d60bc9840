// Convolutions on a device against the CPU: forward, transposed and by the weight; strides, paddings, dilations, groups, one to three dims,
// layouts, dtypes, nothing at all.
#include "ops/convolution.h"
#include "cuda/on_host/scheduler.h"
#include "tests/cuda/against_cpu.h"

using namespace retrograd;

namespace {

constexpr auto numbers = unit_numbers;

void compare(const OpInfo& op, const Tensors& operands, ops::ConvolutionAttrs& attrs) {
  expect_like_cpu(op, operands, &attrs, 200);
}

struct Case {
  IntArray large, kernel;  // spatial
  int64_t batch = 2, channels = 3, features = 5, groups = 1;
  IntList stride, padding, dilation;
};

IntArray with(int64_t first, int64_t second, const IntArray& places) {
  IntArray size(places);
  size.insert(size.begin(), {first, second});
  return size;
}

void try_case(const Case& c, ScalarType dtype) {
  device_on_host();
  ops::ConvolutionAttrs attrs;
  attrs.stride = c.stride;
  attrs.padding = c.padding;
  attrs.dilation = c.dilation;
  attrs.groups = c.groups;
  IntArray small;
  for (size_t d = 0; d < c.large.size(); ++d) {
    const int at = static_cast<int>(d);
    small.push_back((c.large[d] + 2 * c.padding[at] - c.dilation[at] * (c.kernel[d] - 1) - 1) / c.stride[at] +
                    1);
  }
  const Tensor x = numbers(with(c.batch, c.channels, c.large), dtype);
  const Tensor g = numbers(with(c.batch, c.features, small), dtype);
  const Tensor w = numbers(with(c.features, c.channels / c.groups, c.kernel), dtype);
  const Tensor turned = numbers(with(c.channels, c.batch, c.large), dtype).transpose(0, 1);
  attrs.size = small;
  compare(ops::info<ops::Convolution>, {x, w, numbers({c.features}, dtype)}, attrs);
  compare(ops::info<ops::Convolution>, {turned, w, Tensor()}, attrs);
  attrs.size = c.large;
  compare(ops::info<ops::ConvolutionTranspose>, {g, w, numbers({c.channels}, dtype)}, attrs);
  if (is_integral(dtype, true)) return;
  attrs.size = c.kernel;
  compare(ops::info<ops::ConvolutionWeight>, {x, g}, attrs);
  compare(ops::info<ops::ConvolutionWeight>, {turned, g}, attrs);
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{11}, {3}, 2, 3, 5, 1, {1}, {0}, {1}},
      {{12, 9}, {3, 2}, 2, 3, 7, 1, {2, 1}, {1, 0}, {1, 2}},
      {{12, 9}, {3, 3}, 2, 6, 6, 6, {1, 2}, {1, 1}, {1, 1}},  // depthwise
      {{7, 8}, {3, 3}, 1, 4, 12, 2, {3, 2}, {2, 1}, {2, 1}},  // groups with several channels
      {{5, 6, 4}, {2, 3, 1}, 2, 2, 6, 1, {1, 2, 1}, {0, 1, 0}, {1, 1, 1}},
      {{9, 9}, {1, 1}, 2, 70, 66, 1, {1, 1}, {0, 0}, {1, 1}},  // plain products, more than a tile
      {{24, 24}, {3, 3}, 3, 3, 8, 1, {1, 1}, {1, 1}, {1, 1}},  // the weight's sums are cut
  };
  return all;
}

}  // namespace

TEST_CASE("convolutions of floats") {
  for (ScalarType dtype : {kFloat32, kFloat64})
    for (const Case& c : cases()) try_case(c, dtype);
}

TEST_CASE("convolutions of 16 bits and of integers") {
  for (ScalarType dtype : {kFloat16, kBFloat16, kInt64, kInt32})
    for (size_t i : {1, 2, 3}) try_case(cases()[i], dtype);
}

TEST_CASE("convolutions of nothing") { try_case({{6}, {3}, 0, 2, 3, 1, {1}, {1}, {1}}, kFloat32); }

TEST_CASE("gradients of a convolution on a device") {
  device_on_host();
  const auto gradients = [](Device device) {
    unit_bits.seed(4);
    const Tensor x = numbers({2, 3, 8, 7}, kFloat32).to(device).requires_grad_(true);
    const Tensor w = numbers({6, 3, 3, 3}, kFloat32).to(device).requires_grad_(true);
    const Tensor y = conv2d(x, w, {}, 2, 1);
    sum(y * y).backward();
    return Tensors{x.grad(), w.grad()};
  };
  const Tensors expected = gradients(kCPU), found = gradients(kCUDA);
  for (size_t i = 0; i < 2; ++i) expect_same(expected[i], found[i], 100);
}

TEST_CASE("bits of a weight's gradient do not depend on the order of blocks and threads") {
  device_on_host();
  NoGradGuard no_grad;
  ops::ConvolutionAttrs attrs;
  attrs.stride = attrs.dilation = {1, 1};
  attrs.padding = {1, 1};
  attrs.size = {Dim(3), Dim(3)};
  const Tensors operands{numbers({2, 3, 24, 24}, kFloat32).to(kCUDA),
                         numbers({2, 8, 24, 24}, kFloat32).to(kCUDA)};
  const std::vector<double> first = emit(ops::info<ops::ConvolutionWeight>, operands, &attrs).to_vector();
  for (unsigned seed : {1u, 2u}) {
    on_host::set_seed(seed);
    CHECK(emit(ops::info<ops::ConvolutionWeight>, operands, &attrs).to_vector() == first);
  }
  on_host::set_seed(0);
}
