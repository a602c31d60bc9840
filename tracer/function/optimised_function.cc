// See tracer/function/optimised_function.h.
#include "tracer/function/optimised_function.h"

namespace retrograd::inline v0 {
namespace {

ir::Graph optimised_forward(const RecordedFunction& forward, const ir::Recompute& recompute) {
  ir::Graph graph = forward.graph.copy();
  recompute.replace_outputs(graph, saved_outputs(forward));
  return optimised(graph, outside_writes(forward), {});
}

}  // namespace

OptimisedFunction::OptimisedFunction(const RecordedFunction& forward, const RecordedFunction* backward,
                                     BackwardChoices choices, int32_t sizes)
    : choices_(std::move(choices)), forward_(optimised_forward(forward, choices_.recompute)), sizes_(sizes) {
  if (backward)
    backward_ = optimised(with_recompute(*backward, forward.graph, choices_.recompute), {}, choices_.given);
}

}  // namespace retrograd
