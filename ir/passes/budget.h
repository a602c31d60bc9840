// fit_budget: a graph that holds at most so many bytes at a time, by computing values again. It follows the passes
// (ir/passes/pipeline.h): the order is that of `schedule`, groups are those of `fuse`, and copies of a group are
// groups.
//
// The graph becomes a problem (ir/passes/budget_tasks.h), a solver gives the curve of its plans (ir/budget/solve.h),
// and the plan of least cost within the budget is written as a graph: the same ops on the same operands, hence the
// same bits. Where no plan is within the budget, the graph stays as it is. In either case the result has the problem
// and all plans, for reports and errors.
#pragma once

#include "ir/budget/solve.h"
#include "ir/passes/budget_tasks.h"

namespace retrograd::inline v0::ir {

struct BudgetFit {
  BudgetTasks tasks;         // of the graph as it was given
  double cost = 0;           // of all tasks, each once
  budget::Curve curve = {};  // by falling peak; the first is that without copies
  size_t chosen = 0;         // of the curve
  bool fits = false;
  std::optional<Boundary> boundary;  // of the fitted graph, if it runs in two parts

  const budget::Plan& plan() const { return curve[chosen]; }
  /// This part of `cost`; 0 if nothing costs anything.
  double share(double some) const { return cost > 0 ? some / cost : 0; }
};

/// The peak of a graph as it is, the temporary memory of every kernel included. `input`: with an executor, sizes, and
/// writes.
int64_t peak_with_scratch(const Graph& graph, const PassInput& input);

/// `input`: with an executor, sizes, and writes. `boundary`: of a graph that runs in two parts.
BudgetFit fit_budget(Graph& graph, const PassInput& input, int64_t bytes, const NodeCost& cost,
                     const budget::Solver& solver, const std::optional<Boundary>& boundary = {});

}  // namespace retrograd::ir
