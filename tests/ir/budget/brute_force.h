// What the exact solver of memory budgets must find, by trying all plans of its kind: 2^candidates of them.
#pragma once

#include <optional>

#include "ir/budget/exact.h"

namespace brute_force {

namespace budget = retrograd::ir::budget;

/// Of all plans of the kind of ir/budget/exact.h; nothing if none is within the cap.
inline std::optional<double> least_cost(const budget::Problem& problem, int64_t cap) {
  const budget::Candidates candidates = budget::candidates_of(problem);
  std::optional<double> least;
  for (uint64_t set = 0; set < uint64_t{1} << candidates.blocks.size(); ++set) {
    std::vector<int32_t> again;
    for (size_t i = 0; i < candidates.blocks.size(); ++i)
      if (set >> i & 1) again.push_back(candidates.blocks[i]);
    const budget::Measure found =
        budget::measure(problem, budget::runs_without(problem, candidates.late, again));
    if (found.peak <= cap && (!least || found.cost < *least)) least = found.cost;
  }
  return least;
}

}  // namespace brute_force
