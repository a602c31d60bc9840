// Shared by the tests of prefetching: a model whose saved values are offloaded, and the options to test.
#pragma once

#include <algorithm>
#include <vector>

#include "retrograd/retrograd.h"
#include "tests/hooks/pairs.h"

namespace retrograd::testing {

inline constexpr int64_t kRows = 24, kWidth = 32;

struct Model {
  Tensors weights;
  Tensor x = wave(kRows * kWidth).view({kRows, kWidth});

  Model() {
    for (int i = 0; i < 4; ++i)
      weights.push_back((wave(kWidth * kWidth, 0.2).view({kWidth, kWidth}) + 0.003 * i).requires_grad_());
  }
  Tensor loss(const Tensor& input) const {
    Tensor h = input;
    for (const Tensor& w : weights) h = gelu(mm(h, w)) + h.narrow(1, 0, kWidth);
    return mean(square(h) * retrograd::sigmoid(h));
  }
  Tensor packed_loss(PrefetchOptions options) const {
    SavedTensorHooksGuard guard(save_on_cpu(true, weights, options));
    return loss(x);
  }
  Tensors take_grads() const {
    Tensors grads;
    for (const Tensor& w : weights) {
      grads.push_back(w.grad());
      w.set_grad({});
    }
    return grads;
  }
  Tensors plain_grads() const {
    loss(x).backward();
    return take_grads();
  }
};

inline bool same(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits);
}

inline const std::vector<PrefetchOptions> kOptions = {{.nodes = 0},
                                                      {.nodes = 1},
                                                      {.nodes = 4},
                                                      {.nodes = 64},
                                                      {.nodes = 0, .room_bytes = 1 << 20},
                                                      {.nodes = 1, .room_bytes = 1 << 20},
                                                      {.nodes = 4, .room_bytes = 8000},
                                                      {.nodes = 64, .room_bytes = 1 << 20}};

}  // namespace retrograd::testing
