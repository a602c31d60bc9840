// See tracer/function/optimised_function.h.
#include "tracer/function/optimised_function.h"

#include "ir/verify.h"
#include "tracer/function/planning.h"

namespace retrograd::inline v0 {

OptimisedFunction::OptimisedFunction(const RecordedFunction& recorded, int32_t sizes)
    : graph_(optimised(recorded.graph, outside_writes(recorded), {})), sizes_(sizes) {}

std::optional<ir::Graph> OptimisedFunction::at_sizes(std::span<const Number> values) const {
  std::vector<Number> all = RecordedFunction::hints(graph_);  // passes may have added expressions
  std::ranges::copy(values, all.begin());
  graph_.symbols.evaluate(all);
  if (graph_.symbols.failing_guard(all) >= 0) return {};
  ir::Graph made = graph_.at_sizes(all, sizes_);
  ir::verify(made);
  return made;
}

}  // namespace retrograd
