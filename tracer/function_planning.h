// What tracer/function_plans.cc and function_ahead.cc share: from a graph to what the passes make of it, its peak, its plan.
#pragma once

#include "ir/passes/group_memory.h"
#include "ir/passes/lifetimes.h"
#include "tracer/function_recorder.h"
#include "tracer/plan.h"

namespace retrograd {

/// What the passes make of a graph. `given`: see ir::PassInput.
ir::Graph optimised(const ir::Graph& graph, std::span<const ir::OutsideWrite> writes,
                    std::span<const int32_t> given);

/// Of each saved value, the output that it is.
std::vector<int32_t> saved_outputs(const RecordedFunction& recorded);

/// `sources` must live as long as the plan.
std::unique_ptr<Plan> plan_of(const ir::Graph& graph, std::vector<Source>& sources,
                              std::span<const Number> numbers, std::span<const WrittenInput> writes = {},
                              std::optional<int64_t> arena_waste = {}, ir::GroupMemories* groups = nullptr);

/// The most bytes that are live while the graph runs in its order.
int64_t peak_of(const ir::Graph& graph, std::span<const ir::OutsideWrite> writes,
                std::span<const int32_t> given, ir::GroupMemories& groups);
int64_t peak_of(const ir::Graph& graph, std::span<const ir::OutsideWrite> writes,
                std::span<const int32_t> given);

}  // namespace retrograd
