// Places of few numbers in sorted order, found without sorting: one function per instruction-set level.
#pragma once

#include <cstdint>

namespace retrograd::cpu {

/// Numbers that are ranked at once at the most; beyond, the work, a square, is more than that of sorting.
inline constexpr int64_t kMostRanked = 160;

/// ranks[i] = how many of the n numbers are smaller than keys[i]. Both arrays have room for kMostRanked.
/// False, and nothing done, at a level whose registers would take longer than sorting.
using Rank = bool (*)(const uint64_t* keys, int64_t n, uint64_t* ranks);

namespace baseline {
bool rank(const uint64_t* keys, int64_t n, uint64_t* ranks);
}
namespace avx2 {
bool rank(const uint64_t* keys, int64_t n, uint64_t* ranks);
}
namespace avx512 {
bool rank(const uint64_t* keys, int64_t n, uint64_t* ranks);
}

}  // namespace retrograd::cpu
