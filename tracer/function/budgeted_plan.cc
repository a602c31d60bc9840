// See tracer/function/budgeted_plan.h.
#include "tracer/function/budgeted_plan.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "ir/passes/budget.h"
#include "tracer/function/budget_report.h"
#include "tracer/function/cost_estimators.h"
#include "tracer/function/sized_function.h"

namespace retrograd::inline v0 {
namespace {

[[noreturn]] void fail_to_fit(const MemoryCertificate& least, int64_t budget, const BudgetRequest& request) {
  std::string peak;
  if (!least.runs.empty()) {
    const MemoryCertificate::Run& run = least.runs[static_cast<size_t>(least.peak_run)];
    peak = fmt::format(", at {} of {}", run.op, to_string(run.where));
  }
  fail(Category::bad_argument, request.op,
       fmt::format("no plan of {} adds at most {} bytes: the least is {}{}; one operation alone "
                   "needs {}. Hint: a smaller batch, or a larger budget",
                   request.what, budget, least.peak_bytes + least.besides_bytes, peak,
                   least.lower_bound_bytes + least.besides_bytes),
       request.where);
}

// All but what only a caller knows: the budget, the plan's own peak, and the time.
MemoryReport report_of(const ir::Graph& graph, const ir::BudgetFit& fit, const BudgetRequest& request) {
  MemoryReport report;
  report.eager_bytes = request.eager_bytes;
  for (const ir::budget::Plan& plan : fit.curve)
    report.pareto.push_back({plan.measure.peak + request.held, fit.share(plan.measure.cost)});
  report.ordered_bytes = report.pareto[0].bytes;
  report.recomputed_share = report.pareto[fit.chosen].recomputed_share;
  report.values = values_of(graph, fit);
  report.certificate = certificate_of(graph, fit, request.held);
  report.lower_bound_bytes = report.certificate.lower_bound_bytes + request.held;
  return report;
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
  const int64_t limit = budget.limit(request.eager_bytes);
  const auto begin = std::chrono::steady_clock::now();
  const ir::budget::Solver& solver = *ir::budget::find_solver(budget.solver());
  ir::NodeCost cost = node_cost(budget, device_for(graph));
  // Solvers follow costs to their plans. Whether one fits must not depend on them.
  bool may_retry = budget.estimator() != MemoryBudget().estimator();
  for (int64_t room = limit - request.held;;) {
    ir::Graph fitted = graph.copy();
    const ir::BudgetFit fit = ir::fit_budget(fitted, input, room, cost, solver, request.boundary);
    if (!fit.fits && std::exchange(may_retry, false)) {
      cost = node_cost(MemoryBudget(), device_for(graph));
      continue;
    }
    if (!fit.fits) fail_to_fit(certificate_of(graph, fit, limit - room), limit, request);
    const int64_t planned = make_plans(std::move(fitted), fit.boundary, room - fit.plan().measure.peak);
    if (planned > limit) {
      room -= planned - limit;
      continue;
    }
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    MemoryReport report = report_of(graph, fit, request);
    report.budget_bytes = limit;
    report.planned_bytes = planned;
    report.plan_ms = time.count();
    return report;
  }
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
  memory_ =
      std::make_unique<const MemoryReport>(plan_within_budget(budget, optimised_forward(), request, plan));
}

}  // namespace retrograd
