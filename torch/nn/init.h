// torch::nn::init: initial values, written in place; each returns the tensor. They are this library's (nn/init.h).
// A mode and an activation are strings, or torch::kFanOut, torch::kReLU.
#pragma once

#include <tuple>

#include "nn/init.h"
#include "torch/enum.h"
#include "torch/nn/names.h"

#pragma GCC visibility push(default)
namespace torch::nn::init {

using retrograd::nn::init::calculate_gain;
using retrograd::nn::init::constant_;
using retrograd::nn::init::dirac_;
using retrograd::nn::init::eye_;
using retrograd::nn::init::kaiming_normal_;
using retrograd::nn::init::kaiming_uniform_;
using retrograd::nn::init::normal_;
using retrograd::nn::init::ones_;
using retrograd::nn::init::orthogonal_;
using retrograd::nn::init::sparse_;
using retrograd::nn::init::trunc_normal_;
using retrograd::nn::init::uniform_;
using retrograd::nn::init::xavier_normal_;
using retrograd::nn::init::xavier_uniform_;
using retrograd::nn::init::zeros_;

inline std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor) {
  const auto [in, out] = retrograd::nn::init::fans(tensor);
  return {in, out};
}

}  // namespace torch::nn::init
#pragma GCC visibility pop
