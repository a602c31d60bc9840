// StepDraws: where the random stream was before each step of a loop, so that a step that is executed again draws the
// same numbers. Steps that draw equally many are one entry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/random.h"

namespace retrograd::inline v0 {

class StepDraws {
 public:
  /// Before step `step`, the next in order, or after the last one, the stream is at `state`.
  void note(int64_t step, GeneratorState state) {
    if (!runs_.empty() && runs_.back().seed == state.seed) {
      Run& last = runs_.back();
      if (last.length == 1) last.stride = state.offset - last.offset;
      if (state.offset == last.offset + last.stride * static_cast<uint64_t>(last.length)) {
        ++last.length;
        return;
      }
    }
    runs_.push_back({step, 1, state.seed, state.offset, 0});
  }
  /// Whether the stream has moved.
  bool any() const { return runs_.size() > 1 || (!runs_.empty() && runs_[0].stride != 0); }
  GeneratorState before(int64_t step) const {
    const auto after = std::ranges::upper_bound(runs_, step, {}, &Run::first);
    const Run& run = *(after - 1);
    return {run.seed, run.offset + run.stride * static_cast<uint64_t>(step - run.first)};
  }

 private:
  struct Run {
    int64_t first, length;
    uint64_t seed, offset, stride;
  };
  std::vector<Run> runs_;
};

}  // namespace retrograd
