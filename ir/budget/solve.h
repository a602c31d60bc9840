// Solvers of memory budgets (ir/budget/problem.h) by name, and the curve of plans that they give.
//
// A curve is made once for a problem, whatever the budget, and a budget takes of it the plan of least cost that it has
// room for. So for a larger budget the cost is not higher, and for a smaller one the peak is not, whatever a solver
// does in between. All solvers are asked for plans within the same caps: in equal ratios from the peak without copies
// down to the least of a single task.
//
//   greedy   ir/budget/greedy.h
//   repair   ir/budget/repair.h
//   exact    ir/budget/exact.h, with kChoices choices for each cap, divided by the number of candidates
//   cut      ir/budget/cut.h: as many plans as there are caps at most, of those it has
//   dp       ir/budget/chain.h
//   default  greedy, cut and dp, and with them repair and exact where there are at most kFewCandidates
//
// Costs are compared, never their unit. Deterministic: the same problem gives the same curve in every process.
#pragma once

#include <string_view>

#include "ir/budget/problem.h"

namespace retrograd::inline v0::ir::budget {

struct Plan {
  std::vector<Run> runs;
  Measure measure;
};

/// Plans by falling peak and rising cost; none is better than another in both. The first is that without copies. Never
/// empty.
using Curve = std::vector<Plan>;

inline constexpr int64_t kChoices = 60'000;
inline constexpr size_t kFewCandidates = 60;

Curve greedy_curve(const Problem& problem);
Curve repair_curve(const Problem& problem);
Curve exact_curve(const Problem& problem);
Curve cut_curve(const Problem& problem);
Curve dp_curve(const Problem& problem);
Curve default_curve(const Problem& problem);

struct Solver {
  std::string_view name;
  Curve (*curve)(const Problem& problem);
};
inline constexpr Solver kSolvers[] = {{"default", default_curve}, {"greedy", greedy_curve},
                                      {"repair", repair_curve},   {"exact", exact_curve},
                                      {"cut", cut_curve},         {"dp", dp_curve}};

/// Null if there is none of this name.
const Solver* find_solver(std::string_view name);

/// The plan for a budget: an index into the curve. If there is no room for any, the last.
size_t plan_within(const Curve& curve, int64_t bytes);

}  // namespace retrograd::ir::budget
