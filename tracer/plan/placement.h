// Placement: the values of a plan that are stored in its arena, and their offsets.
//
// The arena is one block of memory that a run holds from beginning to end. A value is stored in it if only kernels
// see its memory; values that outside code sees (outputs, gradients of leaves, operands of hooks and of host code)
// get separate memory, since they may outlive the run. Views are located in their base. An elementwise result is laid
// over an operand that dies there with all its views. The scratch memory of a kernel (Executor::scratch_bytes) is
// also a piece of the arena. So all addresses in the arena are known when a run begins.
//
// If more memory would be live with an arena than the caller allows, because many values with separate memory
// accumulate next to it, nothing is placed.
//
// Start reading at place_values(). Offsets come from ir/passes/memory_plan.h. A value without elements is not placed.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace retrograd::inline v0 {

/// One step of a plan, as far as memory is concerned.
struct PlacedStep {
  enum class Kind : uint8_t { kernel, view, reader, other };  // reader: returns other memory, keeps nothing
  Kind kind;
  uint32_t node;  // last node of the step
  std::span<const ir::ValueId> operands, results;
  int64_t scratch_bytes;
};

/// The input of place_values().
struct PlacedPlan {
  const ir::Graph& graph;
  std::span<const PlacedStep> steps;
  std::span<const int32_t> last;   // of each value, the last node of the last step that needs it
  std::span<const int64_t> bytes;  // of each type of the graph
  /// Whether a value has memory of another kind, such as a written input's.
  std::function<bool(ir::ValueId)> is_outside;
  /// Whether result `r` of a kernel may be laid over its operand `o`, which is of the same type.
  std::function<bool(size_t step, int o, int r)> may_overwrite;
  int64_t most_waste;  // bytes that may be live beyond the peak without an arena
  /// Values with separate memory and values of the arena are never laid over one another.
  bool keeps_arena = false;
};

struct Placement {
  std::vector<int64_t> offsets;  // of each value, in bytes; -1: not in the arena
  std::vector<int64_t> scratch;  // of each step; -1: none
  int64_t arena_bytes = 0;
};

Placement place_values(const PlacedPlan& plan);

}  // namespace retrograd
