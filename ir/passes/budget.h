// fit_budget: a graph that holds at most so many bytes at a time, by computing values again. It follows the passes
// (ir/passes/pipeline.h): the order is that of `schedule`, groups are those of `fuse`, and copies of a group are
// groups.
//
// The graph becomes a problem (ir/passes/budget_tasks.h), a solver gives the curve of its plans (ir/budget/solve.h),
// and the plan of least cost within the budget is written as a graph: the same ops on the same operands, hence the
// same bits. Where no plan is within the budget, the graph stays as it is, and the result says what the least is and
// which node holds it.
#pragma once

#include "ir/budget/solve.h"
#include "ir/passes/budget_tasks.h"

namespace retrograd::inline v0::ir {

/// A plan of the curve.
struct BudgetPoint {
  int64_t peak_bytes;
  double cost;  // of what is computed again, relative to the cost of the graph
};

struct BudgetFit {
  /// A value that is computed again.
  struct Again {
    std::string_view op;
    SourceLocation where;
    int64_t bytes;
    int32_t times;
  };

  std::vector<BudgetPoint> curve;  // by falling peak; the first is that without copies
  size_t chosen = 0;               // of the curve
  bool fits = false;
  std::vector<Again> again;     // in the order in which they are first computed
  int64_t lower_bound = 0;      // no plan can hold less
  std::string_view op_at_peak;  // of the chosen plan
  SourceLocation where_at_peak = {};
  std::optional<Boundary> boundary;  // of the fitted graph, if it runs in two parts

  const BudgetPoint& point() const { return curve[chosen]; }
};

/// The peak of a graph as it is, the temporary memory of every kernel included. `input`: with an executor, sizes, and
/// writes.
int64_t peak_with_scratch(const Graph& graph, const PassInput& input);

/// `input`: with an executor, sizes, and writes. `boundary`: of a graph that runs in two parts.
BudgetFit fit_budget(Graph& graph, const PassInput& input, int64_t bytes, const NodeCost& cost,
                     const budget::Solver& solver, const std::optional<Boundary>& boundary = {});

}  // namespace retrograd::ir
