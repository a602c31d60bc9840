// MemoryClasses: which values may share memory, and whether code outside of the graph may see it.
//
// Values are immutable, but their memory need not be: a hook may write to the gradient that it is given, an
// accumulation to `.grad`, and a step of SGD in a hook to the parameter in a slot. An eager run computes each node in
// turn, so it reads what was there at that moment. Passes must not change what is read. Therefore:
//
//   - Memory is *open* if code outside of the graph may reach it: memory of inputs, of results of effects, and of
//   values that an effect is given. All other memory is *private*: made by a node of the graph and seen by pure nodes
//   only.
//   - A node that reads open memory stays between the two effects around it (segment()).
//   - A value with memory of its own may be moved into another's memory only if both are private and not both are
//   outputs.
//
// A view shares its operand's memory, and so may the result of a pure op that runs on the host (`contiguous`). All
// other ops make new, row-major memory. Only traits are used. One pass over the graph, with union-find.
#pragma once

#include <algorithm>

#include "ir/graph.h"

namespace retrograd::inline v0::ir {

/// After the graph has run, the binding of input number `input` gets the value of output number `output`: a recorded
/// function writes to tensors from outside this way. The value may be computed in that memory, once nothing reads the
/// old one any more.
struct OutsideWrite {
  int32_t input, output;
};

/// A pure op whose results are new, row-major memory.
inline bool makes_memory(const OpInfo& op) {
  return op.is(Trait::pure) && !op.is(Trait::view) && (!op.run_on_host || op.is(Trait::fresh));
}
/// Whether the results of a node are row-major, whatever the layout of its inputs. `first`: whether operand 0 is.
inline bool gives_row_major(const OpInfo& op, bool first) {
  return makes_memory(op) || (op.is(Trait::row_major) && first);
}
/// Whether result r of a node may be computed in the memory of operand o, if they have one type: element by element, or
/// because the op says so (Trait::updates counts the present operands, Trait::overwrites means operand 0).
inline bool may_lie_over(const OpInfo& op, std::span<const ValueId> operands, size_t o, int r) {
  if (op.is(Trait::elementwise)) return true;
  if (op.is(Trait::overwrites)) return o == 0 && std::ranges::count(operands, operands[0]) == 1;
  return op.is(Trait::updates) && std::ranges::count(operands, operands[o]) == 1 &&
         static_cast<int64_t>(o) - std::ranges::count(operands.first(o), kNoValue) == r;
}

/// An op that reads the elements of its operands.
inline bool reads_memory(const OpInfo& op) { return !op.is(Trait::view); }

class MemoryClasses {
 public:
  explicit MemoryClasses(const Graph& graph);

  bool is_private(ValueId v) { return !flags_[root(v)].open; }
  /// Returned by the graph, or sharing memory with such a value.
  bool is_output(ValueId v) { return flags_[root(v)].output; }
  /// One value of each class: the same for all that may share its memory.
  ValueId representative(ValueId v) { return static_cast<ValueId>(root(v)); }
  /// The number of effects before a node.
  int32_t segment(size_t node) const { return segments_[node]; }
  /// Whether one value may replace another that has memory of its own.
  bool may_share(ValueId a, ValueId b) {
    return is_private(a) && is_private(b) && (root(a) == root(b) || !(is_output(a) && is_output(b)));
  }
  /// From now on they share memory.
  void merge(ValueId a, ValueId b);

 private:
  struct Flags {
    bool open = false, output = false;
  };
  size_t root(ValueId v);

  std::vector<ValueId> parent_;
  std::vector<Flags> flags_;  // of roots
  std::vector<int32_t> segments_;
};

}  // namespace retrograd::ir
