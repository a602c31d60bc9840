// See ir/passes/budget.h.
#include "ir/passes/budget.h"

namespace retrograd::inline v0::ir {

int64_t peak_with_scratch(const Graph& graph, const PassInput& input) {
  const BudgetTasks tasks = budget_tasks(graph, input, [](const Graph&, const Node&) { return 0.0; });
  return budget::measure(tasks.problem, budget::plain_runs(tasks.problem)).peak;
}

BudgetFit fit_budget(Graph& graph, const PassInput& input, int64_t bytes, const NodeCost& cost,
                     const budget::Solver& solver, const std::optional<Boundary>& boundary) {
  BudgetFit fit{.tasks = budget_tasks(graph, input, cost, boundary), .boundary = boundary};
  for (const budget::Task& task : fit.tasks.problem.tasks) fit.cost += task.cost;
  fit.curve = solver.curve(fit.tasks.problem);
  fit.chosen = budget::plan_within(fit.curve, bytes);
  fit.fits = fit.plan().measure.peak <= bytes;
  if (fit.fits && (fit.chosen > 0 || boundary)) fit.boundary = with_runs(graph, fit.tasks, fit.plan().runs);
  return fit;
}

}  // namespace retrograd::ir
