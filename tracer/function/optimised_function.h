// OptimisedFunction: the graph of a recorded function after the passes, in which sizes are still symbols. The passes run
// once, at the sizes of the recording; for other sizes, numbers take the place of symbols.
#pragma once

#include <optional>

#include "tracer/function/recorded_function.h"

namespace retrograd::inline v0 {

class OptimisedFunction {
 public:
  /// `sizes`: the first so many symbols are sizes.
  OptimisedFunction(const RecordedFunction& recorded, int32_t sizes);

  /// `values`: of all expressions of the recorded graph. Nothing if a pass relied on a relation between sizes that does
  /// not hold for these.
  std::optional<ir::Graph> at_sizes(std::span<const Number> values) const;

 private:
  ir::Graph graph_;
  int32_t sizes_;
};

}  // namespace retrograd
