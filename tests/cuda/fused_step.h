// A training step on cuda:0 whose plans, compiled or captured, have fused groups: run by the tests, and before that by
// the tool that writes the kernels of its groups.
#pragma once

#include <functional>

#include <retrograd/retrograd.h>

#include "cuda/fusion/fusion.h"

namespace retrograd {

/// A block of two layers with a normalisation, a residual and a pointwise loss.
class FusedStep {
 public:
  /// Of this many rows.
  explicit FusedStep(int64_t rows = 4) {
    manual_seed(7);
    for (const Shape& size : {Shape{8, 16}, Shape{16}, Shape{16, 8}, Shape{8}, Shape{8}, Shape{8}})
      parameters_.push_back(randn(size).to(kCUDA).requires_grad_());
    target_ = randn({rows, 8}).to(kCUDA);
    x_ = randn({rows, 8}).to(kCUDA);
  }
  /// `see`: is called with y and n, which the backward reaches in the opposite order.
  using See = std::function<void(const Tensor& y, const Tensor& n)>;
  Tensor loss(const Tensor& x, const See& see = {}) const {
    const Tensor &w1 = parameters_[0], &b1 = parameters_[1], &w2 = parameters_[2], &b2 = parameters_[3];
    const Tensor h = gelu(matmul(x, w1) + b1);
    const Tensor y = matmul(h * sigmoid(h), w2) + b2 + x;
    const Tensor c = y - mean(y, 1, true);
    const Tensor n = c / sqrt(mean(c * c, 1, true) + 1e-5) * parameters_[4] + parameters_[5];
    if (see) see(y, n);
    return sum(square(tanh(n) - target_)) * 0.125;
  }
  /// With dropout between its groups.
  Tensor dropped_loss(const Tensor& x) const {
    const Tensor h = dropout(gelu(matmul(x, parameters_[0]) + parameters_[1]), 0.25);
    const Tensor y = dropout(matmul(h * sigmoid(h), parameters_[2]) + parameters_[3], 0.5) + x;
    return sum(square(tanh(y) - target_)) * 0.125;
  }
  /// With a hook on n that doubles its gradient, and gives y one that does so, too.
  Tensor hooked_loss(const Tensor& x) const {
    return loss(x, [](const Tensor& y, const Tensor& n) {
      Tensor later = y;
      Tensor(n).register_hook([later](const Tensor& g) mutable {
        later.register_hook([](const Tensor& gradient) { return gradient * 2; });
        return g * 2;
      });
    });
  }
  static Tensor whole(const Tensor& loss) {
    loss.backward();
    return loss.detach();
  }
  /// A step that is one plan, from no gradients on.
  template <class F>
  Tensor run(F&& whole) const {
    for (const Tensor& p : parameters_) p.set_grad({});
    return whole(x_);
  }
  /// Of `f`, which is loss() or that compiled; the loss is the last.
  template <class F>
  Tensors gradients(F&& f) const {
    for (const Tensor& p : parameters_) p.set_grad({});
    const Tensor value = f(x_);
    value.backward();
    Tensors found = gradients_now();
    found.push_back(value.detach());
    return found;
  }
  /// Those that parameters have.
  Tensors gradients_now() const {
    Tensors found;
    for (const Tensor& p : parameters_)
      if (p.grad().defined()) found.push_back(p.grad());
    return found;
  }

 private:
  Tensors parameters_;
  Tensor x_, target_;
};

/// All groups that the plans of such steps request.
inline void run_fused_steps() {
  const FusedStep step;
  step.gradients(compile([&](const Tensor& x) { return step.loss(x); }));
  step.run(compile_step([&](const Tensor& x) { return step.whole(step.loss(x)); }));
  step.run(compile_step([&](const Tensor& x) { return step.whole(step.dropped_loss(x)); }));
  CompiledBackward captured = compile_backward();
  const CompiledBackwardScope scope(captured);
  step.gradients([&](const Tensor& x) { return step.loss(x); });
  step.gradients([&](const Tensor& x) { return step.hooked_loss(x); });
  const SavedTensorHooksGuard guard(save_on_cpu());
  step.gradients([&](const Tensor& x) { return step.loss(x); });
}

}  // namespace retrograd
