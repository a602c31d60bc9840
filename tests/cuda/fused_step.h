// A training step on cuda:0 whose backward is a plan with fused groups: run by the test, and before by the tool that writes down the kernels
// which its groups ask for.
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
      parameters.push_back(randn(size).to(kCUDA).requires_grad_());
    x_ = randn({4, 8}).to(kCUDA);
    target_ = randn({4, 8}).to(kCUDA);
  }
  Tensor loss() const {
    const Tensor &w1 = parameters[0], &b1 = parameters[1], &w2 = parameters[2], &b2 = parameters[3];
    const Tensor h = gelu(matmul(x_, w1) + b1);
    const Tensor y = matmul(h * sigmoid(h), w2) + b2 + x_;
    const Tensor c = y - mean(y, 1, true);
    const Tensor n = c / sqrt(mean(c * c, 1, true) + 1e-5) * parameters[4] + parameters[5];
    return sum(square(tanh(n) - target_)) * 0.125;
  }
  /// The gradients of a backward through the tape, or through `compiled`.
  Tensors gradients(CompiledBackward* compiled) const {
    for (const Tensor& p : parameters) p.set_grad({});
    if (compiled)
      (*compiled)(loss());
    else
      loss().backward();
    Tensors found;
    for (const Tensor& p : parameters) found.push_back(p.grad());
    return found;
  }

  Tensors parameters;

 private:
  Tensor x_, target_;
};

}  // namespace retrograd
