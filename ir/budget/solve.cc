// See ir/budget/solve.h.
#include "ir/budget/solve.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>

#include "ir/budget/chain.h"
#include "ir/budget/cut.h"
#include "ir/budget/exact.h"
#include "ir/budget/greedy.h"
#include "ir/budget/repair.h"

namespace retrograd::inline v0::ir::budget {
namespace {

// The caps of a curve: fewer of a large problem, so that it is planned in about a second.
constexpr size_t kMostCaps = 80, kLeastCaps = 12, kTasksAndCaps = 120'000;

Plan plan_of(const Problem& problem, std::vector<Run> runs) {
  const Measure found = measure(problem, runs);
  return {std::move(runs), found};
}

// Of plans with one peak, or one cost, that which is better in the other; none that another is better than in both. The
// plan without copies, with which they begin, stays, also where copies cost nothing.
Curve best_of(Curve plans) {
  std::ranges::stable_sort(plans.begin() + 1, plans.end(), [](const Plan& a, const Plan& b) {
    return a.measure.cost != b.measure.cost ? a.measure.cost < b.measure.cost
                                            : a.measure.peak < b.measure.peak;
  });
  Curve best;
  for (Plan& plan : plans)
    if (best.empty() || plan.measure.peak < best.back().measure.peak) best.push_back(std::move(plan));
  return best;
}

// In equal ratios, falling, from below the peak without copies to the least.
std::vector<int64_t> caps_of(const Problem& problem, int64_t peak) {
  const size_t count = std::clamp(kTasksAndCaps / (problem.tasks.size() + 1), kLeastCaps, kMostCaps);
  const double most = static_cast<double>(std::max<int64_t>(peak, 1)),
               least = static_cast<double>(std::max<int64_t>(least_bytes(problem), 1));
  std::vector<int64_t> caps(count);
  for (size_t i = 0; i < count; ++i)
    caps[i] = static_cast<int64_t>(
        most * std::pow(least / most, static_cast<double>(i + 1) / static_cast<double>(count)));
  return caps;
}

// Each adds its plans to a curve that begins with the plan without copies.
void add_greedy(const Problem& problem, Curve& plans) {
  for (int64_t cap : caps_of(problem, plans[0].measure.peak))
    if (auto runs = greedy_plan(problem, cap)) plans.push_back(plan_of(problem, *std::move(runs)));
  plans = best_of(std::move(plans));
}
void add(const Problem& problem, std::vector<std::vector<Run>> found, Curve& plans) {
  for (std::vector<Run>& runs : found) plans.push_back(plan_of(problem, std::move(runs)));
  plans = best_of(std::move(plans));
}
void add_repaired(const Problem& problem, Curve& plans) {
  add(problem, repaired_plans(problem, caps_of(problem, plans[0].measure.peak)), plans);
}
void add_cuts(const Problem& problem, Curve& plans) {
  add(problem, cut_plans(problem, caps_of(problem, plans[0].measure.peak).size()), plans);
}
void add_chained(const Problem& problem, Curve& plans) {
  add(problem, chain_plans(problem, caps_of(problem, plans[0].measure.peak)), plans);
}
// Plans that cost less than those of the curve.
void add_exact(const Problem& problem, Curve& plans) {
  Curve found;
  const auto candidates = static_cast<int64_t>(candidates_of(problem).blocks.size());
  for (int64_t cap : caps_of(problem, plans[0].measure.peak)) {
    const Measure& best = plans[plan_within(plans, cap)].measure;
    const double below = best.peak <= cap ? best.cost : std::numeric_limits<double>::infinity();
    if (auto plan = exact_plan(problem, cap, kChoices / (candidates + 1), below))
      found.push_back(plan_of(problem, std::move(plan->runs)));
  }
  std::ranges::move(found, std::back_inserter(plans));
  plans = best_of(std::move(plans));
}

// The plan without copies, and what these find in turn. Where there is nothing to do, there is nothing to find.
Curve curve_by(std::initializer_list<void (*)(const Problem&, Curve&)> finders, const Problem& problem) {
  Curve plans;
  plans.push_back(plan_of(problem, plain_runs(problem)));
  if (problem.tasks.empty()) return plans;
  for (const auto find : finders) find(problem, plans);
  return plans;
}

}  // namespace

Curve greedy_curve(const Problem& problem) { return curve_by({add_greedy}, problem); }
Curve repair_curve(const Problem& problem) { return curve_by({add_repaired}, problem); }
Curve exact_curve(const Problem& problem) { return curve_by({add_exact}, problem); }
Curve cut_curve(const Problem& problem) { return curve_by({add_cuts}, problem); }
Curve dp_curve(const Problem& problem) { return curve_by({add_chained}, problem); }

Curve default_curve(const Problem& problem) {
  if (candidates_of(problem).blocks.size() > kFewCandidates)
    return curve_by({add_greedy, add_cuts, add_chained}, problem);
  return curve_by({add_greedy, add_cuts, add_chained, add_repaired, add_exact}, problem);
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
