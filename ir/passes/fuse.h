// Fusion: selects the nodes of a graph that run as one step. Nodes of a group are adjacent and carry its number
// (Node::group); nothing else is changed, so every reader of graphs except a plan may ignore it. The executor decides
// what a group may hold (FusedRole).
//
// Nodes that can be fused wait, in groups, until something needs their values. All others stay where they are:
//   - A view, an unpack or any other node that uses a waiting value causes its group to be emitted first.
//   - An effect (a hook, an accumulation into `.grad`) and a kernel that cannot be fused cause all groups to be
//   emitted: no node waits beyond one. So user code sees, and can write to, the same memory as if no node had waited,
//   and nothing is held longer than to the next such node.
//   - Unpacks and views do not stop the other nodes. They come before the group, where they were.
// A node joins the group that gives one of its operands, or that reads the same one, if the shapes are the same: one
// group has one iteration space, to which other operands broadcast. A reduction of a value of that space ends in the
// group; nothing in the group uses it. When a group is emitted it also takes later reductions of its values, up to the
// next effect: for example, that of a bias, which follows the matrix products of its layer. Reductions of a group are
// over the same dims of one dtype, and of values that are row-major whatever the layout of inputs. No group waits for another: the operands of a node from outside its group are
// computed before. Hence the order is one in which nodes may run.
//
// Limits: nodes of one result; a view of a value ends its group; a group of one node is no group. Groups of updates
// (ir/passes/join_updates.h) exist before and are kept.
#pragma once

#include <functional>

#include "engine/executor.h"
#include "ir/rewriter.h"

namespace retrograd::inline v0::ir {

struct FuseOptions {
  Executor& executor;
  /// Emits all groups before a node (by number): where a run may leave the graph, or before an unpack that calls user
  /// code.
  std::function<bool(size_t node)> stops = {};
  std::span<const ValueId> kept = {};        // values that are needed besides those of nodes and outputs
  size_t most_nodes = 40, most_inputs = 16;  // of a group
  bool looks_ahead = true;                   // also takes later reductions
};

struct Grouping {
  std::vector<uint32_t> order;  // the nodes, by number
  std::vector<int32_t> group;   // for each position in the order; -1: none
  int32_t groups = 0;
};

Grouping find_groups(const Graph& graph, const FuseOptions& options);

/// Puts the nodes of a graph into that order, with the numbers of their groups.
Remap regroup(Graph& graph, const Grouping& grouping);

/// The role of a node in a group.
FusedRole fused_role(const Graph& graph, const Node& node, const Executor& executor);

/// The kernel of a group, of either kind: nodes that can be fused, or updates of an optimizer
/// (ir/passes/join_updates.h). Null when the executor has none.
std::unique_ptr<FusedKernel> group_kernel(Executor& executor, const FusedGroup& group);

/// How often each value is used: as an operand, as an output of the graph, or in `kept`.
std::vector<int32_t> count_uses(const Graph& graph, std::span<const ValueId> kept = {});

/// Describes a group of a graph to an executor, at given sizes.
class GroupDescription {
 public:
  /// `nodes`: by number, in order. Results that are also used outside of them are outputs. `values`: of all expressions
  /// of graph.symbols.
  GroupDescription(const Graph& graph, std::span<const uint32_t> nodes, std::span<const int32_t> uses,
                   std::span<const Number> values);
  GroupDescription(const GroupDescription&) = delete;

  FusedGroup group() const { return {types_, nodes_, outputs_}; }
  /// The values of the inputs and outputs.
  std::span<const ValueId> inputs() const { return inputs_; }
  std::span<const ValueId> outputs() const { return output_values_; }

 private:
  std::vector<ValueId> inputs_, output_values_;
  std::vector<TensorType> types_;
  std::vector<int32_t> operands_, outputs_;
  std::vector<FusedNode> nodes_;
};

}  // namespace retrograd::ir
