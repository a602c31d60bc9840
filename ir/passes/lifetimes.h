// Lifetimes: for each value of a graph the block of memory that it lies in, and from which node to which
// that is needed. What the memory plan and the pass `schedule` count with.
//
// A value of a pure op that is no view gets a block; views lie in their operand's. An elementwise result lies
// in the block of an operand of its type that dies there, if the block holds that operand alone (in place).
// Inputs and results of effects have no block: their memory is the caller's. An input that is *given* has
// one: it is the caller's last hold on the memory, which goes with the last use; of a slot it is that of the
// value which is unpacked. What is given away, to an effect or as an output, *escapes*: its memory must come
// from the allocator, since it may outlive the run. After that it counts as live to the end if an effect
// without results took it (`.grad`) or it is an output.
//
// Nodes of a group are one step (ir/passes/group_memory.h): from its first node to its last one there are its
// inputs, its outputs and what its kernel needs; values inside it have no block.
//
// `contiguous` and its like give their operand or a copy, which the graph cannot know: counted is a block
// of its own, and the operand's is kept as long. So all figures are exact save for these, where they are
// upper bounds.
#pragma once

#include "ir/passes/group_memory.h"
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
  std::vector<int64_t> scratch;   // of each place: what kernels need for themselves; empty: not asked

  /// Bytes of all blocks that are live at each place, escaping ones and scratch included; and after the last.
  std::vector<int64_t> live_bytes() const;
  /// The most of them.
  int64_t peak_bytes() const;
};

struct LifetimeOptions {
  std::span<const Number> values = {};  // of all symbols; without them those at capture
  std::span<const int32_t> order = {};  // of the nodes, by number; without it that of the graph
  std::span<const OutsideWrite> writes = {};
  std::span<const int32_t> given = {};  // numbers of inputs: tensors, slots
  GroupMemories* groups = nullptr;      // without it each node runs by itself, and scratch is not asked
  std::span<const int32_t> group = {};  // of each place in the order, -1: none; without it that of the nodes
  bool in_place = true;
};

Lifetimes lifetimes(const Graph& graph, const LifetimeOptions& options = {});

}  // namespace retrograd::ir
