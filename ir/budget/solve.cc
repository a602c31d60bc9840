// See ir/budget/solve.h.
#include "ir/budget/solve.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ir/budget/exact.h"
#include "ir/budget/greedy.h"

namespace retrograd::inline v0::ir::budget {
namespace {

// The caps of a curve: fewer of a large problem, so that it is planned in about a second.
constexpr size_t kMostCaps = 40, kLeastCaps = 12, kTasksAndCaps = 120'000;

Plan plan_of(const Problem& problem, std::vector<Run> runs) {
  const Measure found = measure(problem, runs);
  return {std::move(runs), found};
}

// Of plans with one peak, or one cost, that which is better in the other; none that another is better than in both.
Curve best_of(Curve plans) {
  std::ranges::stable_sort(plans, [](const Plan& a, const Plan& b) {
    return a.measure.cost != b.measure.cost ? a.measure.cost < b.measure.cost
                                            : a.measure.peak < b.measure.peak;
  });
  Curve best;
  for (Plan& plan : plans)
    if (best.empty() || plan.measure.peak < best.back().measure.peak) best.push_back(std::move(plan));
  return best;
}

// `plan(cap)`: runs within it, if any.
template <class F>
Curve curve_over_caps(const Problem& problem, const F& plan) {
  Curve plans;
  plans.push_back(plan_of(problem, plain_runs(problem)));
  const size_t caps = std::clamp(kTasksAndCaps / (problem.tasks.size() + 1), kLeastCaps, kMostCaps);
  const double most = static_cast<double>(plans[0].measure.peak),
               least = static_cast<double>(std::max<int64_t>(least_bytes(problem), 1));
  for (size_t i = 1; i <= caps; ++i) {
    const auto cap = static_cast<int64_t>(
        most * std::pow(least / most, static_cast<double>(i) / static_cast<double>(caps)));
    if (auto runs = plan(cap)) plans.push_back(plan_of(problem, *std::move(runs)));
  }
  return best_of(std::move(plans));
}

}  // namespace

Curve greedy_curve(const Problem& problem) {
  return curve_over_caps(problem, [&](int64_t cap) { return greedy_plan(problem, cap); });
}

Curve exact_curve(const Problem& problem) {
  return curve_over_caps(problem, [&](int64_t cap) -> std::optional<std::vector<Run>> {
    std::optional<ExactPlan> found = exact_plan(problem, cap, kChoices);
    if (!found) return {};
    return std::move(found->runs);
  });
}

Curve default_curve(const Problem& problem) {
  Curve plans = greedy_curve(problem);
  if (candidates_of(problem).blocks.size() > kFewCandidates) return plans;
  std::ranges::move(exact_curve(problem), std::back_inserter(plans));
  return best_of(std::move(plans));
}

const Solver* find_solver(std::string_view name) {
  const auto* const found = std::ranges::find(kSolvers, name, &Solver::name);
  return found == std::end(kSolvers) ? nullptr : found;
}

size_t plan_within(const Curve& curve, int64_t bytes) {
  const auto fits = [&](const Plan& plan) { return plan.measure.peak <= bytes; };
  const auto found = std::ranges::find_if(curve, fits);
  return found == curve.end() ? curve.size() - 1 : static_cast<size_t>(found - curve.begin());
}

}  // namespace retrograd::ir::budget
