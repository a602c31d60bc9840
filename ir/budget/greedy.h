// greedy: a plan that never holds more than a cap, found by running the tasks in their order on paper.
//
// Where a task would go beyond the cap, live blocks are dropped until it fits: first those that cost least to make
// again, for each byte and each task that they would be held for. The uses to come are known, so this is what a cache
// does that knows the future, with the price of a miss. A block that a task reads and that is not there is made again
// first, from what is there, and what it needs, and so on; what was made again stays while there is room, and may be
// dropped and made again as often as it pays. A block that is only needed to make others again is worth something,
// too: up to the task for which they will be made again, it goes as any other.
//
// So boundaries of layers emerge, since they are dear to make and others are made from them, and a smaller cap gives
// more copies, down to the memory of single layers. The price of a block is that of its task and of what is no longer
// there to run it, as it was when that was dropped.
//
// Cost: a heap of the live blocks, whose order is brought up to date where it is looked at: O(log n) for a drop.
// Limits: some tasks may run many times where the cap is low; a plan of more than kMostRuns runs for each task is
// none.
#pragma once

#include <optional>

#include "ir/budget/problem.h"

namespace retrograd::inline v0::ir::budget {

inline constexpr size_t kMostRuns = 6;

/// Nothing if it finds none within the cap.
std::optional<std::vector<Run>> greedy_plan(const Problem& problem, int64_t cap);

}  // namespace retrograd::ir::budget
