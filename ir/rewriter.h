// Rewriter: builds a new version of a graph from its own nodes and new ones. Passes are written with it (ir/passes).
//
//   Rewriter rewriter(graph);
//   for (size_t i = 0; i < graph.nodes().size(); ++i)
//     if (is_dead(i)) continue;                                      // dropped
//     else if (is_copy(i)) rewriter.replace(result, rewriter.now(operand));
//     else rewriter.keep(i);
//   remap.then(rewriter.finish());
//
// Nodes of a graph never change, so a new list is built next to the old one: an old node is kept with its operands
// mapped, its results are replaced by other values, or it is left out; new nodes are appended in between. Until
// finish() the graph is unchanged, also after an exception. finish() replaces the old list by the new one. Inputs,
// handles, names, locations, origins, types and symbols keep their values and addresses; attributes are not copied.
// Only the numbers of values change: inputs first, then results in order.
//
// "Old" values are numbered as in the graph before, "new" ones as after finish(). O(1) per node.
#pragma once

#include "ir/graph.h"

namespace retrograd::inline v0::ir {

/// The new positions of the nodes and values of a graph after a rewriting, for tables outside of the graph.
struct Remap {
  std::vector<int32_t> nodes;   // of each old node; -1: dropped or replaced
  std::vector<ValueId> values;  // of each old value; kNoValue: it is no longer computed
  /// For each position before an old node, and for the end: the new position directly after the last effect before it.
  /// Effects keep their order, so an event between two of them stays between them.
  std::vector<int32_t> places;

  static Remap identity(const Graph& graph);
  /// This rewriting followed by `next`.
  void then(const Remap& next);
};

class Rewriter {
 public:
  explicit Rewriter(Graph& graph);
  Rewriter(const Rewriter&) = delete;

  /// Keeps old node `index`, with the new values of its operands, or with `operands` (new values). Its results become
  /// those of the new node.
  const Node& keep(size_t index);
  const Node& keep(size_t index, std::span<const ValueId> operands);
  /// Uses of an old value become uses of a new one, of the same type.
  void replace(ValueId old, ValueId now);
  /// Adds a node with the location and origin of old node `like`; operands are new values. Its type rule must give
  /// `results`.
  const Node& append(const OpInfo& op, std::span<const ValueId> operands, const void* attrs,
                     std::span<const TensorType> results, const Node& like);

  /// The new value of an old one; kNoValue if it has none (yet).
  ValueId now(ValueId old) const {
    return old == kNoValue ? kNoValue : remap_.values[static_cast<size_t>(old)];
  }

  // The new list so far.
  const std::vector<Node>& nodes() const { return nodes_; }
  std::span<const ValueId> operands(const Node& n) const {
    return {pool_.data() + n.first_operand, n.operands};
  }
  const TensorType& type(ValueId value) const {
    return graph_.types()[static_cast<size_t>(types_[static_cast<size_t>(value)])];
  }
  int32_t value_count() const { return static_cast<int32_t>(types_.size()); }

  /// Replaces the graph's nodes by the new list. Everything that outputs and kept nodes use must have been kept or
  /// replaced.
  Remap finish();

 private:
  Node& add(Node node, std::span<const ValueId> operands);

  Graph& graph_;
  Remap remap_;
  std::vector<Node> nodes_;
  std::vector<ValueId> pool_, mapped_;
  std::vector<int32_t> types_;  // of new values
};

}  // namespace retrograd::ir
