// Fusion: which nodes of a graph run as one step. Nodes of a group stand next to each other and carry its
// number (Node::group); nothing else is changed, so every reader of graphs but a plan may pass over it. What
// a group may hold is the executor's answer (FusedRole).
//
// Nodes that can be fused wait, in groups, until something needs their values. All others stay where they
// are:
//   - A view, an unpack or whatever uses a value that waits lets its group go first.
//   - An effect (a hook, an accumulation into `.grad`) and a kernel that cannot be fused let all groups go: no
//     node waits beyond one. So what code of the user's can see, and what memory it can write to, is as if no
//     node had waited; and nothing is held longer than to the next such node.
//   - Unpacks and views do not stop the others. They come before the group, where they were.
// A node joins the group that gives one of its operands, or that reads the same one, if the shapes are the
// same: one group has one iteration space, to which other operands broadcast. A reduction of a value of that
// space ends in the group; nothing in the group uses it. When a group goes it takes along reductions of its values that
// stand further on, before the next effect, as that of a bias stands behind the products of its layer. Reductions of a group are over the same
// dims of one dtype. No group waits for another: whatever a node needs
// besides its group has run before. Hence the order is one in which nodes may run.
//
// Limits: nodes of one result; a view of a value ends its group; groups of one node are none. Groups of updates (ir/passes/join_updates.h) are
// there before, and stay.
#pragma once

#include <functional>

#include "engine/executor.h"
#include "ir/rewriter.h"

namespace retrograd::ir {

struct FuseOptions {
  Executor& executor;
  /// Lets all groups go before a node (by number): where a run may leave the graph, or before an unpack that
  /// calls code of the user's.
  std::function<bool(size_t node)> stops = {};
  std::span<const ValueId> kept = {};        // values that somebody needs beside nodes and outputs
  size_t most_nodes = 40, most_inputs = 16;  // of a group
  bool looks_ahead = true;                   // takes along reductions
};

struct Grouping {
  std::vector<uint32_t> order;  // the nodes, by number
  std::vector<int32_t> group;   // of each place in the order; -1: none
  int32_t groups = 0;
};

Grouping find_groups(const Graph& graph, const FuseOptions& options);

/// Puts the nodes of a graph in that order, with the numbers of their groups.
Remap regroup(Graph& graph, const Grouping& grouping);

/// What a node may be in a group.
FusedRole fused_role(const Graph& graph, const Node& node, const Executor& executor);

/// The kernel of a group, of either kind: nodes that can be fused, or updates of an optimizer (ir/passes/join_updates.h). Null when the
/// executor has none.
std::unique_ptr<FusedKernel> group_kernel(Executor& executor, const FusedGroup& group);

/// How often each value is used: as an operand, as an output of the graph, or in `kept`.
std::vector<int32_t> count_uses(const Graph& graph, std::span<const ValueId> kept = {});

/// A group of a graph as an executor wants it, at given sizes.
class GroupDescription {
 public:
  /// Of `nodes`, by number, in order. Results with more uses than those among the nodes are outputs. `values`: of
  /// all expressions of graph.symbols.
  GroupDescription(const Graph& graph, std::span<const uint32_t> nodes, std::span<const int32_t> uses,
                   std::span<const Number> values);
  GroupDescription(const GroupDescription&) = delete;

  FusedGroup group() const { return {types_, nodes_, outputs_}; }
  /// The values that inputs and outputs are.
  std::span<const ValueId> inputs() const { return inputs_; }
  std::span<const ValueId> outputs() const { return output_values_; }

 private:
  std::vector<ValueId> inputs_, output_values_;
  std::vector<TensorType> types_;
  std::vector<int32_t> operands_, outputs_;
  std::vector<FusedNode> nodes_;
};

}  // namespace retrograd::ir
