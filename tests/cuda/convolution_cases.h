// Convolutions to be compared with the CPU: forward, transposed and by the weight; strides, paddings, dilations,
// groups, one to three dims.
#pragma once

#include "ops/convolution.h"
#include "tests/cuda/against_cpu.h"

namespace retrograd {

struct ConvolutionCase {
  IntArray large, kernel;  // spatial
  int64_t batch = 2, channels = 3, features = 5, groups = 1;
  IntList stride, padding, dilation;
};

inline const std::vector<ConvolutionCase>& convolution_cases() {
  static const std::vector<ConvolutionCase> all = {
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

inline IntArray with_places(int64_t first, int64_t second, const IntArray& places) {
  IntArray size(places);
  size.insert(size.begin(), {first, second});
  return size;
}

inline void try_convolution(const ConvolutionCase& c, ScalarType dtype) {
  device_on_host();
  const auto compare = [](const OpInfo& op, const Tensors& operands, ops::ConvolutionAttrs& attrs) {
    expect_like_cpu(op, operands, &attrs, 200);
  };
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
  const Tensor x = unit_numbers(with_places(c.batch, c.channels, c.large), dtype);
  const Tensor g = unit_numbers(with_places(c.batch, c.features, small), dtype);
  const Tensor w = unit_numbers(with_places(c.features, c.channels / c.groups, c.kernel), dtype);
  const Tensor turned = unit_numbers(with_places(c.channels, c.batch, c.large), dtype).transpose(0, 1);
  attrs.size = small;
  compare(ops::info<ops::Convolution>, {x, w, unit_numbers({c.features}, dtype)}, attrs);
  compare(ops::info<ops::Convolution>, {turned, w, Tensor()}, attrs);
  attrs.size = c.large;
  compare(ops::info<ops::ConvolutionTranspose>, {g, w, unit_numbers({c.channels}, dtype)}, attrs);
  if (is_integral(dtype, true)) return;
  attrs.size = c.kernel;
  compare(ops::info<ops::ConvolutionWeight>, {x, g}, attrs);
  compare(ops::info<ops::ConvolutionWeight>, {turned, g}, attrs);
}

/// All cases in floats, some of 16 bits, and one of nothing.
inline void try_convolutions() {
  for (ScalarType dtype : {kFloat32, kFloat64})
    for (const ConvolutionCase& c : convolution_cases()) try_convolution(c, dtype);
  for (ScalarType dtype : {kFloat16, kBFloat16})
    for (size_t i : {1, 2, 3}) try_convolution(convolution_cases()[i], dtype);
  try_convolution({{6}, {3}, 0, 2, 3, 1, {1}, {1}, {1}}, kFloat32);
}

/// A device with the library that `make` opens, which is used wherever possible; in :parity the machine's own. Earlier
/// devices keep their library.
class WithDnn {
 public:
  using Make = std::function<std::unique_ptr<cuda::Dnn>(std::string& problem)>;
  explicit WithDnn(Make make, cuda::DnnUse use = cuda::DnnUse::wherever_it_can) {
    renew(std::move(make));
    cuda::gpu_of(0).use_dnn(use);
  }
  ~WithDnn() {
    cuda::gpu_of(0).use_dnn(cuda::DnnUse::where_it_wins);
    renew({});
  }
  WithDnn(const WithDnn&) = delete;

 private:
  static void renew(Make make) {
    device_on_host().make_dnn = std::move(make);
    renew_device();
  }
};

}  // namespace retrograd
