// exact: the plan of least cost within a cap, of all plans of one kind: the order is kept, and each candidate is kept,
// too, or made again directly before each of its late uses. Late is what comes after the peak without copies; a
// candidate is a block that is made and read before it and read again after it.
//
// Branch and bound over the candidates, those first that hold most for longest. A choice of some of them is given up
// when its cost reaches that of a plan that was found, or when even its optimistic profile is above the cap: there,
// blocks that are kept are live throughout, all others only where tasks of the order read them, and whatever may be
// computed in place is.
//
// Limits: meant for up to some tens of candidates, or some hundreds where bounds are tight; after `most_choices`
// choices the best so far is given, and `is_optimal` is false.
#pragma once

#include <limits>
#include <optional>

#include "ir/budget/problem.h"

namespace retrograd::inline v0::ir::budget {

/// The blocks for which there is a choice, and where late uses begin.
struct Candidates {
  std::vector<int32_t> blocks;
  int32_t late = 0;  // the first task that is late
};
Candidates candidates_of(const Problem& problem);

/// When a block is made again: directly before each late use; or before the first one, and kept for the others.
enum class MadeAgain : uint8_t { each_use, once };
/// The plan in which these blocks are made again for their late uses.
std::vector<Run> runs_without(const Problem& problem, int32_t late, std::span<const int32_t> blocks,
                              MadeAgain when = MadeAgain::each_use);

struct ExactPlan {
  std::vector<Run> runs;
  bool is_optimal;
};
/// Nothing if no plan of this kind is within the cap and costs less than `below`.
std::optional<ExactPlan> exact_plan(const Problem& problem, int64_t cap, int64_t most_choices,
                                    double below = std::numeric_limits<double>::infinity());

}  // namespace retrograd::ir::budget
