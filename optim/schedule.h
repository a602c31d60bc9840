// Learning-rate schedules: functions of the step, so that a resumed run needs no schedule state.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

/// Linear warm-up to `peak`, then half a cosine down to `final` at step `steps`. As in nanoGPT, warm-up step t has peak
/// (t + 1) / (warmup + 1).
struct CosineSchedule {
  double peak = 1e-3;
  double final = 0;
  int64_t warmup = 0;  ///< steps
  int64_t steps = 1;   ///< in all, the warm-up included

  /// The rate of step t, counted from 0; `final` beyond the end.
  double at(int64_t t) const {
    if (t < warmup) return peak * static_cast<double>(t + 1) / static_cast<double>(warmup + 1);
    if (t >= steps) return final;
    const double progress = static_cast<double>(t - warmup) / static_cast<double>(steps - warmup);
    return final + 0.5 * (1 + std::cos(std::numbers::pi * progress)) * (peak - final);
  }
};

}  // namespace retrograd::optim
#pragma GCC visibility pop
