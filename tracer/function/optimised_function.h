// OptimisedFunction: the graphs of a recorded function after the passes, in which sizes are still symbols. The passes
// run once, at the sizes of the recording; for other sizes, numbers take the place of symbols.
#pragma once

#include <optional>

#include "tracer/function/planning.h"

namespace retrograd::inline v0 {

/// What planning a function for the sizes of its recording has found: it holds for all sizes.
struct BackwardChoices {
  ir::Recompute recompute;
  std::vector<int32_t> given = {};  // inputs of the backward: see ir::PassInput
};

class OptimisedFunction {
 public:
  /// `backward`: null if there is none, or none for all sizes. `sizes`: the first so many symbols are sizes.
  OptimisedFunction(const RecordedFunction& forward, const RecordedFunction* backward,
                    BackwardChoices choices, int32_t sizes);

  /// `values`: of all expressions of the recorded forward. Nothing if a pass relied on a relation between sizes that
  /// does not hold for these.
  std::optional<ir::Graph> forward(std::span<const Number> values) const {
    return optimised_at(forward_, values, sizes_);
  }
  std::optional<ir::Graph> backward(std::span<const Number> values) const {
    return optimised_at(backward_, values, sizes_);
  }
  const BackwardChoices& choices() const { return choices_; }

 private:
  BackwardChoices choices_;
  ir::Graph forward_, backward_;
  int32_t sizes_;
};

}  // namespace retrograd
