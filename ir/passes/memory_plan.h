// The memory plan: where each block lies in one arena, so that blocks that are live at the same time
// never overlap. A pure function of the lifetimes (ir/passes/lifetimes.h); nothing is allocated here.
//
// Packing blocks with given lifetimes into the least memory is NP-hard. Several plans are made and the
// smallest is taken:
//   - by time: blocks in order of their first node, each into the smallest hole that fits, as a malloc
//     would. For blocks of one size this is optimal, and it takes O(n log n).
//   - by size: the largest block first, each at the lowest offset that is free while it lives (TFLite and
//     TVM call it greedy by size); and by size times lifetime. As long as there is something to gain, each
//     is repeated with a block that lies at the top moved to the front of the order.
// The latter compare a block with all placed ones that live with it. This work has a limit, proportional
// to the number of blocks; the blocks that are left when it is reached are placed by time, above the
// others.
//
// The lower bound, the most bytes that are live at one node, is often reached; `waste()` says how far a
// plan is from it.
#pragma once

#include "ir/passes/lifetimes.h"

namespace retrograd::ir {

struct MemoryPlan {
  static constexpr int64_t kAlignment = 64, kLarge = 4096;
  /// Of a block of this many bytes. Large ones begin with a cache line, for the sake of wide loads; the others where the largest power of
  /// two that divides their size has it, so that small ones need not fill lines.
  static int64_t alignment_of(int64_t bytes);

  std::vector<int64_t> offsets;  // of each block, in bytes; -1: it escapes, the allocator gives its memory
  int64_t arena_bytes = 0;
  int64_t lower_bound = 0;  // no arena can be smaller
  int64_t peak_bytes = 0;   // of all blocks, escaping ones included, as they are

  /// How much larger the arena is than it had to be at least: 0.02 is 2 percent.
  double waste() const {
    return lower_bound ? static_cast<double>(arena_bytes) / static_cast<double>(lower_bound) - 1 : 0;
  }
};

MemoryPlan plan_memory(const Lifetimes& lifetimes);

}  // namespace retrograd::ir
