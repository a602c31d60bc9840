// Names of libtorch's at:: and c10:: that programs use and that are no functions of retrograd under the same name.
#pragma once

#include <cstdio>

#include "engine/float_formats.h"
#include "ops/losses.h"
#include "torch/types.h"

#pragma GCC visibility push(default)
namespace torch {

using retrograd::BFloat16;
using retrograd::Half;

namespace cuda {
/// No kernel is cuDNN's.
inline bool cudnn_is_available() { return false; }
}  // namespace cuda

/// torch::Reduction::Sum
using Reduction = retrograd::LossReduction;

/// retrograd::cross_entropy under ATen's name.
inline Tensor cross_entropy_loss(retrograd::Operand self, const Tensor& target, const Tensor& weight = {},
                                 Reduction reduction = Reduction::Mean, int64_t ignore_index = -100,
                                 retrograd::Scalar label_smoothing = 0.0) {
  return retrograd::cross_entropy(self, target, weight, reduction, ignore_index, label_smoothing);
}

/// As << does; the width of a line is the library's.
inline std::ostream& print(std::ostream& out, const Tensor& tensor, int64_t /*linesize*/ = 80) {
  return out << tensor;
}

/// The arguments as one text.
template <class... Parts>
std::string str(const Parts&... parts) {
  return detail::joined(parts...);
}

}  // namespace torch
#pragma GCC visibility pop

#define AT_ASSERT(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ASSERTM(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ERROR(...) TORCH_CHECK(false __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_WARN(...) \
  (void)std::fprintf(stderr, "Warning: %s\n", ::torch::detail::joined(__VA_ARGS__).c_str())
