// Lifetimes: for each value of a graph the block of memory that it lies in, and from which node to which
// that is needed. What the memory plan and the pass `schedule` count with.
//
// A value of a pure op that is no view gets a block; views lie in their operand's. An elementwise result
// lies in the block of an operand of its type that dies there, if the block holds that operand alone (in
// place). Inputs and results of effects have no block: their memory is the caller's. What is given away,
// to an effect or as an output, *escapes*: its memory must come from the allocator, since it may outlive
// the run. After that it counts as live to the end if an effect without results took it (`.grad`) or it
// is an output.
//
// `contiguous` and its like give their operand or a copy, which the graph cannot know: counted is a block
// of its own, and the operand's is kept as long. So all figures are exact save for these, where they are
// upper bounds.
#pragma once

#include "ir/passes/memory_classes.h"

namespace retrograd::ir {

struct Block {
  int64_t bytes;
  int32_t first,
      last;  // places in the order: made at the node `first`, needed up to the node `last`, both included
  bool escapes;
};

struct Lifetimes {
  std::vector<Block> blocks;      // in order of `first`
  std::vector<int32_t> block_of;  // of each value; -1: none
  int32_t nodes = 0;              // live to the end means last == nodes

  /// Bytes of all blocks that are live at one node, at most; escaping ones included.
  int64_t peak_bytes() const;
};

struct LifetimeOptions {
  std::span<const Number> values = {};  // of all symbols; without them those at capture
  std::span<const int32_t> order = {};  // of the nodes, by number; without it that of the graph
  std::span<const OutsideWrite> writes = {};
  bool in_place = true;
};

Lifetimes lifetimes(const Graph& graph, const LifetimeOptions& options = {});

}  // namespace retrograd::ir
