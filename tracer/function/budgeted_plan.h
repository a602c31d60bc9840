// Plans within a memory budget (tracer/function/memory_budget.h): the graph after the passes is fitted to the budget
// (ir/passes/budget.h), and the plan of it is checked with the forecast of a run, which is exact. Where the plan needs
// more than the graph does, because of layouts that only the plan knows, the graph is fitted to so much less.
//
// A step, and a function without gradients, is one graph. A function with a backward is fitted as one, too: its
// *joint graph* is the forward and directly behind it the backward for gradients of all results (joint_plan.cc).
#pragma once

#include <functional>
#include <optional>

#include "ir/budget/problem.h"
#include "ir/passes/lifetimes.h"
#include "ir/splice.h"
#include "tracer/function/memory_budget.h"
#include "tracer/plan/forecast.h"

namespace retrograd::inline v0 {

struct BudgetRequest {
  std::string_view op, what;  // for errors: compile, "the function"
  SourceLocation where;
  int64_t eager_bytes = 0;
  std::span<const ir::OutsideWrite> writes = {};
  std::optional<ir::Boundary> boundary = {};  // of a joint graph
  int64_t held = 0;                           // bytes that a run holds besides, at most
};

/// Makes the plans of the fitted graph. `room`: the bytes up to the budget that the graph leaves. Returns the bytes
/// that a run adds, those held besides included.
using MakePlans = std::function<int64_t(ir::Graph fitted, const std::optional<ir::Boundary>&, int64_t room)>;

/// What the operations of a recorded graph hold at their peak, one by one, in their order. `values`: of all
/// expressions; without them those at the recording.
int64_t eager_peak(const ir::Graph& recorded, std::span<const ir::OutsideWrite> writes,
                   std::span<const Number> values = {});

/// Error(bad_argument) if no plan is within the budget.
MemoryReport plan_within_budget(const MemoryBudget& budget, const ir::Graph& graph,
                                const BudgetRequest& request, const MakePlans& make_plans);

/// Of a run of the plan with these bindings, arena included in `most`.
MemoryTimeline timeline_of(const Plan& plan, std::vector<ir::Binding> bindings,
                           std::span<const Number> numbers);

}  // namespace retrograd
