// splice and cut: two graphs that run one after the other as one graph, and one graph as two that do.
//
// Nodes keep their lines, origins and groups. Symbols keep their numbers, so where both parts have some, the table of
// one must begin as the other's: the caller gives each graph its table.
#pragma once

#include "ir/graph.h"

namespace retrograd::inline v0::ir {

/// Whether the graph can be spliced without inputs of its own, and without symbols and effects.
bool can_be_spliced(const Graph& graph);

/// Appends the nodes of `what` to `to`. inputs[i], a value of `to` of the same type, replaces input i; for kNoValue, as
/// for each handle, `to` gets an input like it, in order. Returns the values in `to` of the outputs of `what`; the
/// outputs of `to` are unchanged.
std::vector<ValueId> splice(Graph& to, const Graph& what, std::span<const ValueId> inputs);

/// The first part of a graph that runs in two: the first so many of its inputs, nodes and outputs.
struct Boundary {
  size_t inputs = 0, nodes = 0, outputs = 0;
};

/// The first part has its inputs, nodes and outputs, the second part the others. Neither has symbols.
struct Cut {
  Graph first, second;
  /// What the second part reads of the first, as values of that. In the second they are the last inputs, in this order.
  std::vector<ValueId> passed;
};
Cut cut(const Graph& graph, const Boundary& boundary);

}  // namespace retrograd::ir
