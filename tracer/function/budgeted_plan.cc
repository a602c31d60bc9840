// See tracer/function/budgeted_plan.h.
#include "tracer/function/budgeted_plan.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "ir/passes/budget.h"
#include "tracer/function/cost_estimators.h"
#include "tracer/function/sized_function.h"

namespace retrograd::inline v0 {
namespace {

std::string text_of(const ir::BudgetFit::Again& value) {
  return fmt::format("{} at {}: {} bytes{}", value.op, to_string(value.where), value.bytes,
                     value.times > 1 ? fmt::format(", {} times", value.times) : "");
}

// `besides`: what a run needs that is not in the graph.
[[noreturn]] void fail_to_fit(const ir::BudgetFit& fit, int64_t budget, int64_t besides,
                              const BudgetRequest& request) {
  fail(Category::bad_argument, request.op,
       fmt::format("no plan of {} adds at most {} bytes: the least is {}, at {} of {}; one operation alone "
                   "needs {}. Hint: a smaller batch, or a larger budget",
                   request.what, budget, fit.point().peak_bytes + besides, fit.op_at_peak,
                   to_string(fit.where_at_peak), fit.lower_bound + besides),
       request.where);
}

}  // namespace

MemoryTimeline timeline_of(const Plan& plan, std::vector<ir::Binding> bindings,
                           std::span<const Number> numbers) {
  const PlanRun run(plan, std::move(bindings), numbers);
  MemoryTimeline timeline = forecast(run);
  timeline.most += plan.program().layout.arena_bytes;
  return timeline;
}

int64_t eager_peak(const ir::Graph& recorded, std::span<const ir::OutsideWrite> writes,
                   std::span<const Number> values) {
  ir::PassInput input;
  input.values = values;
  input.writes = writes;
  input.executor = &executor_for(recorded);
  return ir::peak_with_scratch(recorded, input);
}

MemoryReport plan_within_budget(const MemoryBudget& budget, const ir::Graph& graph,
                                const BudgetRequest& request, const MakePlans& make_plans) {
  ir::PassInput input;
  input.writes = request.writes;
  input.executor = &executor_for(graph);
  MemoryReport report;
  report.eager_bytes = request.eager_bytes;
  report.budget_bytes = budget.limit(report.eager_bytes);
  const auto begin = std::chrono::steady_clock::now();
  const ir::budget::Solver& solver = *ir::budget::find_solver(budget.solver());
  ir::NodeCost cost = node_cost(budget, device_for(graph));
  // Solvers follow costs to their plans. Whether one fits must not depend on them.
  bool may_retry = budget.estimator() != MemoryBudget().estimator();
  for (int64_t room = report.budget_bytes - request.held;;) {
    ir::Graph fitted = graph.copy();
    const ir::BudgetFit fit = ir::fit_budget(fitted, input, room, cost, solver, request.boundary);
    if (!fit.fits && std::exchange(may_retry, false)) {
      cost = node_cost(MemoryBudget(), device_for(graph));
      continue;
    }
    if (!fit.fits) fail_to_fit(fit, report.budget_bytes, report.budget_bytes - room, request);
    report.planned_bytes = make_plans(std::move(fitted), fit.boundary, room - fit.point().peak_bytes);
    report.ordered_bytes = fit.curve[0].peak_bytes + request.held;
    report.lower_bound_bytes = fit.lower_bound + request.held;
    report.recomputed_share = fit.point().cost;
    report.pareto.clear();
    for (const ir::BudgetPoint& point : fit.curve)
      report.pareto.push_back({point.peak_bytes + request.held, point.cost});
    report.again.clear();
    for (const ir::BudgetFit::Again& value : fit.again) report.again.push_back(text_of(value));
    if (report.planned_bytes <= report.budget_bytes) break;
    room -= report.planned_bytes - report.budget_bytes;
  }
  report.plan_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

// A step has an arena, as far as there is room for its gaps.
void SizedFunction::plan_whole_within(const MemoryBudget& budget, const Tensors& arguments) {
  const bool is_step = capture_->kind() == FunctionKind::step;
  const std::vector<ir::OutsideWrite> writes = outside_writes(recorded_);
  BudgetRequest request{is_step ? "compile_step" : "compile", is_step ? "the step" : "the function",
                        capture_->where()};
  request.eager_bytes = eager_peak(capture_->recorded().graph, outside_writes(capture_->recorded()), sizes_);
  request.writes = writes;
  const auto plan = [&](ir::Graph fitted, const std::optional<ir::Boundary>&, int64_t room) {
    plan_.reset();
    planned_ = std::move(fitted);
    ir::GroupMemories groups(planned_, executor_for(planned_), numbers_);
    make_plan(arguments, is_step ? std::optional(room) : std::nullopt, groups);
    const MemoryTimeline timeline = timeline_of(*plan_, bind(arguments), numbers_);
    return timeline.most - timeline.at_begin;
  };
  memory_ = plan_within_budget(budget, optimised_forward(), request, plan);
}

}  // namespace retrograd
