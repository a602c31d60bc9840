// A training step on cuda:0 whose plans, compiled, have fused groups: run by the test, and before by the tool
// that writes down the kernels which its groups ask for.
#pragma once

#include <retrograd/retrograd.h>

#include "cuda/fusion/fusion.h"

namespace retrograd {

/// A block of two layers with a normalisation, a residual and a pointwise loss.
class FusedStep {
 public:
  FusedStep() {
    manual_seed(7);
    for (const Shape& size : {Shape{8, 16}, Shape{16}, Shape{16, 8}, Shape{8}, Shape{8}, Shape{8}})
      parameters_.push_back(randn(size).to(kCUDA).requires_grad_());
    target_ = randn({4, 8}).to(kCUDA);
    x_ = randn({4, 8}).to(kCUDA);
  }
  Tensor loss(const Tensor& x) const {
    const Tensor &w1 = parameters_[0], &b1 = parameters_[1], &w2 = parameters_[2], &b2 = parameters_[3];
    const Tensor h = gelu(matmul(x, w1) + b1);
    const Tensor y = matmul(h * sigmoid(h), w2) + b2 + x;
    const Tensor c = y - mean(y, 1, true);
    const Tensor n = c / sqrt(mean(c * c, 1, true) + 1e-5) * parameters_[4] + parameters_[5];
    return sum(square(tanh(n) - target_)) * 0.125;
  }
  /// Of `f`, which is loss() or that compiled; the loss is the last.
  template <class F>
  Tensors gradients(F&& f) const {
    for (const Tensor& p : parameters_) p.set_grad({});
    const Tensor value = f(x_);
    value.backward();
    Tensors found;
    for (const Tensor& p : parameters_) found.push_back(p.grad());
    found.push_back(value.detach());
    return found;
  }

 private:
  Tensors parameters_;
  Tensor x_, target_;
};

}  // namespace retrograd
