// The memory plan: the position of each block in one arena, so that blocks that are live at the same time never
// overlap. A pure function of the lifetimes (ir/passes/lifetimes.h); nothing is allocated here.
//
// Packing blocks with given lifetimes into the least memory is NP-hard. Several plans are made and the smallest is
// used:
//   - by time: blocks in order of their first node, each into the smallest hole that fits, as malloc would. For blocks
//   of one size this is optimal, and it takes O(n log n).
//   - by size: the largest block first, each at the lowest offset that is free during its lifetime (TFLite and TVM call
//   it greedy by size); and by size times lifetime. As long as there is more than a five-hundredth to gain, they are
//   repeated in turns, each with its topmost block moved to the front of the order.
// The latter compare a block with all placed ones with overlapping lifetimes. This work is limited to an amount
// proportional to the number of blocks; blocks that remain when the limit is reached are placed by time, above the
// others.
//
// The lower bound, the most bytes that are live at one node, is often reached; `waste()` says how far a
// plan is from it.
#pragma once

#include <limits>

#include "ir/passes/lifetimes.h"

namespace retrograd::inline v0::ir {

struct MemoryPlan {
  static constexpr int64_t kAlignment = 64, kLarge = 4096;
  /// The alignment of a block of this many bytes. Large ones begin at a cache line, for the sake of wide loads. Small
  /// ones are aligned to the largest power of two that divides their size, so that they need not fill lines.
  static int64_t alignment_of(int64_t bytes);

  // Of each block, in bytes; -1: it escapes, and the allocator provides its memory.
  std::vector<int64_t> offsets;
  int64_t arena_bytes = 0;
  int64_t lower_bound = 0;  // no arena can be smaller
  int64_t peak_bytes = 0;   // of all blocks, escaping ones included, as they are

  /// The relative excess of the arena over the lower bound: 0.02 is 2 percent.
  double waste() const {
    return lower_bound ? static_cast<double>(arena_bytes) / static_cast<double>(lower_bound) - 1 : 0;
  }
};

/// `most`: an arena of more bytes than that is of no use to the caller.
MemoryPlan plan_memory(const Lifetimes& lifetimes, int64_t most = std::numeric_limits<int64_t>::max());

}  // namespace retrograd::ir
