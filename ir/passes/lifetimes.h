// Lifetimes: for each value of a graph its memory block, and the first and last node that need it. The memory plan and
// the pass `schedule` are based on it.
//
// A value of a pure op that is no view gets a block; views use their operand's. An elementwise result uses the block of
// an operand of its type that dies there, if the block holds only that operand (in place). Inputs and results of
// effects have no block: their memory is the caller's. A *given* input has one: it is the caller's last reference to
// the memory, which is freed after the last use; for a slot it is the memory of the unpacked value. A value that is
// given away, to an effect or as an output, *escapes*: its memory must come from the allocator, since it may outlive
// the run. After that it counts as live to the end if an effect without results took it (`.grad`) or it is an output.
//
// Nodes of a group are one step (ir/passes/group_memory.h): from its first node to its last one its inputs, its outputs
// and the temporary memory of its kernel are live; values inside it have no block.
//
// `contiguous` and similar ops give their operand or a copy, which is unknown here: they count as a block of their own,
// and the operand's block lives as long. So all figures are exact except for these, where they are upper bounds.
#pragma once

#include "ir/passes/group_memory.h"
#include "ir/passes/memory_classes.h"

namespace retrograd::inline v0::ir {

struct Block {
  int64_t bytes;
  int32_t first,
      last;  // positions in the order: made at the node `first`, needed up to the node `last`, both included
  bool escapes;
};

struct Lifetimes {
  std::vector<Block> blocks;      // in order of `first`
  std::vector<int32_t> block_of;  // of each value; -1: none
  int32_t nodes = 0;              // `last == nodes`: live to the end
  std::vector<int64_t> scratch;   // for each position: temporary memory of kernels; empty: not requested

  /// Bytes of all blocks that are live at each position, including escaping ones and scratch; and after the last.
  std::vector<int64_t> live_bytes() const;
  /// The largest of them.
  int64_t peak_bytes() const;
};

struct LifetimeOptions {
  std::span<const Number> values = {};  // of all symbols; default: those at capture
  std::span<const int32_t> order = {};  // the nodes, by number; default: the order of the graph
  std::span<const OutsideWrite> writes = {};
  std::span<const int32_t> given = {};  // numbers of inputs: tensors, slots
  GroupMemories* groups = nullptr;      // null: each node runs by itself, and scratch is not computed
  // For each position in the order, -1: none; default: that of the nodes.
  std::span<const int32_t> group = {};
  bool in_place = true;
};

Lifetimes lifetimes(const Graph& graph, const LifetimeOptions& options = {});

}  // namespace retrograd::ir
