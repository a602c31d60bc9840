// See ir/passes/budget.h.
#include "ir/passes/budget.h"

namespace retrograd::inline v0::ir {
namespace {

// The values that a plan makes more than once.
std::vector<BudgetFit::Again> made_again(const Graph& graph, const BudgetTasks& tasks,
                                         std::span<const budget::Run> runs) {
  std::vector<int32_t> times(tasks.problem.blocks.size());
  const auto each_made = [&](const budget::Run& run, const auto& f) {
    const budget::Task& task = tasks.problem.tasks[static_cast<size_t>(run.task)];
    for (size_t i = 0; i < task.results.size(); ++i)
      if (run.makes(i)) f(static_cast<size_t>(task.results[i]));
  };
  for (const budget::Run& run : runs) each_made(run, [&](size_t block) { ++times[block]; });
  std::vector<BudgetFit::Again> again;
  for (size_t t = 0; t < tasks.nodes.size(); ++t)
    each_made({static_cast<int32_t>(t)}, [&](size_t block) {
      if (times[block] < 2) return;
      const Node& node = graph.nodes()[tasks.nodes[t].numbers.back()];
      again.push_back({node.op->name, node.where, tasks.problem.blocks[block].bytes, times[block] - 1});
    });
  return again;
}

}  // namespace

int64_t peak_with_scratch(const Graph& graph, const PassInput& input) {
  const BudgetTasks tasks = budget_tasks(graph, input, [](const Graph&, const Node&) { return 0.0; });
  return budget::measure(tasks.problem, budget::plain_runs(tasks.problem)).peak;
}

BudgetFit fit_budget(Graph& graph, const PassInput& input, int64_t bytes, const NodeCost& cost,
                     const budget::Solver& solver, const std::optional<Boundary>& boundary) {
  BudgetFit fit;
  fit.boundary = boundary;
  if (graph.nodes().empty()) {
    fit.curve.push_back({0, 0});
    fit.fits = true;
    return fit;
  }
  const BudgetTasks tasks = budget_tasks(graph, input, cost, boundary);
  const budget::Curve curve = solver.curve(tasks.problem);
  double all = 0;
  for (const budget::Task& task : tasks.problem.tasks) all += task.cost;
  for (const budget::Plan& plan : curve)
    fit.curve.push_back({plan.measure.peak, all > 0 ? plan.measure.cost / all : 0});
  fit.chosen = budget::plan_within(curve, bytes);
  fit.fits = fit.point().peak_bytes <= bytes;
  fit.lower_bound = budget::least_bytes(tasks.problem);
  const budget::Plan& plan = curve[fit.chosen];
  const int32_t task_at_peak = plan.runs[static_cast<size_t>(plan.measure.at)].task;
  const Node& at_peak = graph.nodes()[tasks.nodes[static_cast<size_t>(task_at_peak)].numbers.back()];
  fit.op_at_peak = at_peak.op->name;
  fit.where_at_peak = at_peak.where;
  if (fit.fits && (fit.chosen > 0 || boundary)) {
    fit.again = made_again(graph, tasks, plan.runs);
    fit.boundary = with_runs(graph, tasks, plan.runs);
  }
  return fit;
}

}  // namespace retrograd::ir
