// Shared by the tests of checkpoint_loop: a loop to run, and what is counted.
#pragma once

#include "retrograd/retrograd.h"
#include "tests/hooks/pairs.h"

namespace retrograd::testing {

inline constexpr int64_t kLoopWidth = 4;

// A step that saves its state, depends on its number, and uses the parameter once.
struct LoopModel {
  Tensor w = shifted_wave(kLoopWidth * kLoopWidth, 0.4).view({kLoopWidth, kLoopWidth}).requires_grad_();
  Tensor start = shifted_wave(3 * kLoopWidth).view({3, kLoopWidth}).requires_grad_();

  Tensor step(const Tensor& u, int64_t i) const {
    return retrograd::tanh(mm(u, w) + 0.01 * static_cast<double>(i));
  }
  auto body() const {
    return [this](const Tensor& u, int64_t i) { return step(u, i); };
  }
  Tensor plain(int64_t n) const {
    Tensor u = start;
    for (int64_t i = 0; i < n; ++i) u = step(u, i);
    return u;
  }
  // The gradients of start and w so far, which are cleared.
  Tensors take_grads() const {
    Tensors grads{start.grad(), w.grad()};
    start.set_grad({});
    w.set_grad({});
    return grads;
  }
};

inline bool same(const Tensors& a, const Tensors& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!same_bits(a[i], b[i])) return false;
  return a.size() == b.size();
}

inline double largest(const Tensor& x) { return amax(abs(x)).item<double>(); }

/// What loops have done since it was made.
class LoopCounts {
 public:
  int64_t executed() const { return checkpoint_loop_stats().steps - before_.steps; }
  int64_t reversed() const { return checkpoint_loop_stats().reversed - before_.reversed; }
  int64_t written() const { return checkpoint_loop_stats().states_written - before_.states_written; }
  int64_t read() const { return checkpoint_loop_stats().states_read - before_.states_read; }

 private:
  const CheckpointLoopStats before_ = checkpoint_loop_stats();
};

}  // namespace retrograd::testing
