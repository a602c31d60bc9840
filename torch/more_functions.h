// Names of libtorch's at:: and c10:: that programs use and that are no functions of retrograd under the same name.
#pragma once

#include "ops/losses.h"
#include "torch/types.h"

#pragma GCC visibility push(default)
namespace torch {

/// torch::Reduction::Sum
using Reduction = retrograd::LossReduction;

/// retrograd::cross_entropy under ATen's name.
inline Tensor cross_entropy_loss(retrograd::Operand self, const Tensor& target, const Tensor& weight = {},
                                 Reduction reduction = Reduction::Mean, int64_t ignore_index = -100,
                                 retrograd::Scalar label_smoothing = 0.0) {
  return retrograd::cross_entropy(self, target, weight, reduction, ignore_index, label_smoothing);
}

/// The arguments as one text.
template <class... Parts>
std::string str(const Parts&... parts) {
  return detail::joined(parts...);
}

}  // namespace torch
#pragma GCC visibility pop

#define AT_ASSERT(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
