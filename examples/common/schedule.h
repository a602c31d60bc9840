// The learning rates of the examples: factors for optim::LambdaLR. They depend on the number of the step alone, so that
// a training can be resumed with other --steps.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "retrograd/retrograd.h"

namespace examples {

/// Linear warm-up to 1, then half a cosine down to `final` at step `steps`, the warm-up included. As in nanoGPT,
/// warm-up step t, counted from 0, has (t + 1) / (warmup + 1).
inline retrograd::optim::LRLambda warmup_cosine(int64_t warmup, int64_t steps, double final) {
  return [=](int64_t step) {
    const auto t = static_cast<double>(step);
    if (step < warmup) return (t + 1) / static_cast<double>(warmup + 1);
    if (step >= steps) return final;
    const double progress = (t - static_cast<double>(warmup)) / static_cast<double>(steps - warmup);
    return final + 0.5 * (1 + std::cos(std::numbers::pi * progress)) * (1 - final);
  };
}

}  // namespace examples
