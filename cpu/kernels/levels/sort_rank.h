// Places of few numbers in sorted order, found without sorting: one function per instruction-set level.
// Implemented by sort_rank.cc.
//
// The rank of a number is how many others are smaller; for distinct keys that is its place. All pairs are
// compared, which for few numbers in registers takes less time than sorting. cpu/kernels/sort.cc uses it for
// short lines.
#pragma once

#include <cstdint>

#include "cpu/levels.h"

namespace retrograd::inline v0::cpu {

/// Numbers that are ranked at once at the most; beyond, the work, a square, is more than that of sorting.
inline constexpr int64_t kMostRanked = 160;

/// ranks[i] = the number of the n numbers that are smaller than keys[i]. Both arrays have room for kMostRanked.
/// Returns false, with nothing done, at a level whose registers would take longer than sorting.
using Rank = bool (*)(const uint64_t* keys, int64_t n, uint64_t* ranks);

RG_EACH_LEVEL(bool rank(const uint64_t* keys, int64_t n, uint64_t* ranks);)
/// The function of the best level.
inline Rank best_rank() { RG_RETURN_BEST_LEVEL(rank); }

}  // namespace retrograd::cpu
