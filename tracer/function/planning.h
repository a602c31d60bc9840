// From a recorded graph to the optimised graph, its peak, its plan, and a run of the plan. The recorded graphs stay
// unchanged, for gradients of gradients.
#pragma once

#include "ir/passes/group_memory.h"
#include "ir/passes/lifetimes.h"
#include "ir/passes/pipeline.h"
#include "ir/passes/recompute_saved.h"
#include "tracer/function/recorded_function.h"
#include "tracer/plan/run.h"

namespace retrograd::inline v0 {

class EarlyGradients;

ir::PassSet passes_off();

/// The values to be computed in the memory of an input, for the passes.
std::vector<ir::OutsideWrite> outside_writes(const RecordedFunction& recorded);

/// The graph after the passes; its sizes may be symbols. `given`: see ir::PassInput.
ir::Graph optimised(const ir::Graph& graph, std::span<const ir::OutsideWrite> writes,
                    std::span<const int32_t> given);

/// The same graph with numbers in place of its sizes, which are the first `sizes` symbols. `values`: of all expressions
/// of the recorded graph, or of that whose table this one's begins with. Nothing if a pass relied on a relation between
/// sizes that does not hold for these.
std::optional<ir::Graph> optimised_at(const ir::Graph& optimised, std::span<const Number> values,
                                      int32_t sizes);

/// A backward's graph that computes anew what is recomputed from saved values of the forward.
ir::Graph with_recompute(const RecordedFunction& backward, const ir::Graph& forward,
                         const ir::Recompute& recompute);

/// The output number of each saved value.
std::vector<int32_t> saved_outputs(const RecordedFunction& recorded);

/// The other arguments: see PlanRequest.
std::unique_ptr<Plan> plan_of(const ir::Graph& graph, std::span<const Number> numbers,
                              std::span<const ir::Binding> bindings = {},
                              std::span<const WrittenInput> writes = {},
                              std::optional<int64_t> arena_waste = {}, ir::GroupMemories* groups = nullptr,
                              std::span<const KeptValue> kept = {});

/// The progress of a run: nodes of the graph that have finished, and that have begun.
struct NodesRun {
  size_t done = 0, begun = 0;
};
/// Observes user code in a run; `run` is set while the plan runs.
struct RunWatcher : RunObserver {
  const PlanRun* run = nullptr;
  // The backward of an opaque function is host code in a recorded function.
  void gradient_missing(uint32_t, Tensors) override { RG_ASSERT(false); }
};
/// Runs a plan. `nodes`: set even if the run throws. `left`: set if it throws, to what is left of the bindings
/// (PlanRun::inputs_left). `early`: gradients that are no outputs then.
Tensors run_plan(const Plan& plan, std::vector<ir::Binding> bindings, std::span<const Number> numbers,
                 NodesRun& nodes, RunWatcher* watcher = nullptr, Tensors* left = nullptr,
                 const EarlyGradients* early = nullptr);

/// The most bytes that are live while the graph runs in its order.
int64_t peak_of(const ir::Graph& graph, std::span<const ir::OutsideWrite> writes,
                std::span<const int32_t> given, ir::GroupMemories& groups);
/// `values`: of all expressions; without them those at the recording.
int64_t peak_of(const ir::Graph& graph, std::span<const ir::OutsideWrite> writes,
                std::span<const int32_t> given, std::span<const Number> values = {});
/// The peak of the recorded graph, with these values of its expressions, less that of the planned one: an arena may
/// waste as much without a peak above an eager run's. `groups`: of `planned`.
int64_t bytes_saved(const RecordedFunction& recorded, std::span<const Number> values,
                    const ir::Graph& planned, ir::GroupMemories& groups);

}  // namespace retrograd
