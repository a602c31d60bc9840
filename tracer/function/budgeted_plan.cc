// The plan of a step with a memory budget (tracer/function/memory_budget.h): the graph after the passes is fitted to
// the budget (ir/passes/budget.h), and the plan of it is checked with the forecast of a run, which is exact. Where the
// plan needs more than the graph does, because of layouts that only the plan knows, the graph is fitted to so much
// less.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "ir/passes/budget.h"
#include "tracer/function/sized_function.h"
#include "tracer/observe/work.h"
#include "tracer/plan/forecast.h"

namespace retrograd::inline v0 {
namespace {

// Rates of a core with wide vectors and of its share of memory, for the ratio of compute to memory of an op. What a
// launch costs at least is that of some kilobytes.
constexpr double kFlopsPerByte = 8, kLaunchBytes = 4096;

// In bytes that could be moved meanwhile.
double cost_of(const ir::Graph& graph, const ir::Node& node) {
  std::vector<TensorType> operands, results;
  for (ir::ValueId v : graph.operands(node))
    operands.push_back(v == ir::kNoValue ? TensorType() : graph.type(v));
  for (int r = 0; r < node.results; ++r) results.push_back(graph.type(node.first_result + r));
  if (node.op->is(Trait::view)) return 0;
  const Work work = work_of(*node.op, operands, results);
  return std::max(work.bytes, work.flops / kFlopsPerByte) + kLaunchBytes;
}

// The most bytes that a run of the plan adds.
int64_t added_bytes(const Plan& plan, const std::vector<ir::Binding>& bindings,
                    std::span<const Number> numbers) {
  const PlanRun run(plan, bindings, numbers);
  const MemoryTimeline timeline = forecast(run);
  return timeline.most - timeline.at_begin + plan.program().layout.arena_bytes;
}

std::string text_of(const ir::BudgetFit::Again& value) {
  return fmt::format("{} at {}: {} bytes{}", value.op, to_string(value.where), value.bytes,
                     value.times > 1 ? fmt::format(", {} times", value.times) : "");
}

[[noreturn]] void fail_to_fit(const ir::BudgetFit& fit, int64_t budget, SourceLocation where) {
  fail(Category::bad_argument, "compile_step",
       fmt::format("no plan of the step adds at most {} bytes: the least is {}, at {} of {}; one operation "
                   "alone needs "
                   "{}. Hint: a smaller batch, or a larger budget",
                   budget, fit.point().peak_bytes, fit.op_at_peak, to_string(fit.where_at_peak),
                   fit.lower_bound),
       where);
}

}  // namespace

void SizedFunction::plan_within(const MemoryBudget& budget, const Tensors& arguments) {
  const std::vector<ir::OutsideWrite> writes = outside_writes(recorded_);
  ir::PassInput input;
  input.writes = writes;
  input.executor = &executor_for(planned_);
  MemoryReport report;
  report.eager_bytes = peak_of(capture_->recorded().graph, outside_writes(capture_->recorded()), {}, sizes_);
  report.budget_bytes = budget.limit(report.eager_bytes);
  const auto begin = std::chrono::steady_clock::now();
  const ir::budget::Solver& solver = *ir::budget::find_solver(budget.solver());
  const ir::Graph ordered = planned_.copy();
  for (int64_t room = report.budget_bytes;;) {
    const ir::BudgetFit fit = ir::fit_budget(planned_, input, room, cost_of, solver);
    if (!fit.fits) fail_to_fit(fit, report.budget_bytes, capture_->where());
    ir::GroupMemories groups(planned_, *input.executor, numbers_);
    make_plan(arguments, room - fit.point().peak_bytes, groups);
    report.planned_bytes = added_bytes(*plan_, bind(arguments), numbers_);
    report.ordered_bytes = fit.curve[0].peak_bytes;
    report.lower_bound_bytes = fit.lower_bound;
    report.recomputed_share = fit.point().cost;
    report.pareto.clear();
    for (const ir::BudgetPoint& point : fit.curve) report.pareto.push_back({point.peak_bytes, point.cost});
    report.again.clear();
    for (const ir::BudgetFit::Again& value : fit.again) report.again.push_back(text_of(value));
    if (report.planned_bytes <= report.budget_bytes) break;
    room -= report.planned_bytes - report.budget_bytes;
    plan_.reset();
    planned_ = ordered.copy();
  }
  report.plan_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  memory_ = std::move(report);
}

}  // namespace retrograd
