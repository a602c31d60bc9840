// Common code of the passes that reorder nodes (schedule, early_updates):
//
//   Units      what is moved as a whole: a group, or a node that is in none
//   Orders     lifetimes and peaks of a graph in different orders, including kernels of groups and scratch
//   reorder()  the graph in such an order
//
// An order lists the numbers of all nodes. ir/passes/order_constraints.h has the rules.
#pragma once

#include <optional>

#include "ir/passes/lifetimes.h"
#include "ir/passes/pass.h"

namespace retrograd::inline v0::ir {

// Unit u is the nodes from begins[u] to begins[u + 1].
struct Units {
  std::vector<int32_t> begins, of;  // of: each node

  explicit Units(const Graph& graph);
  size_t size() const { return begins.size() - 1; }
  int32_t last_node(int32_t unit) const { return begins[static_cast<size_t>(unit) + 1] - 1; }
  std::span<const Node> nodes(const Graph& graph, int32_t unit) const {
    const auto begin = static_cast<size_t>(begins[static_cast<size_t>(unit)]);
    return {graph.nodes().data() + begin, static_cast<size_t>(begins[static_cast<size_t>(unit) + 1]) - begin};
  }
};

class Orders {
 public:
  Orders(const Graph& graph, const PassInput& input);
  Orders(const Orders&) = delete;

  /// Without an order: the peak of the graph as it is.
  int64_t peak(std::span<const int32_t> order = {});
  /// The lifetimes of the graph as it is, with each value in memory of its own.
  Lifetimes apart();

 private:
  const Graph& graph_;
  std::optional<GroupMemories> groups_;
  LifetimeOptions options_;
};

/// Units stay together in the order; groups are numbered in it.
Remap reorder(Graph& graph, std::span<const int32_t> order);

}  // namespace retrograd::ir
