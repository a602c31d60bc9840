// splice: the nodes of one graph behind those of another, for a plan that runs both.
//
// Inputs of the second become values of the first. Nodes keep their lines and origins. Both graphs are of pure nodes without symbols: handles
// and numbers of runs would need bindings of both.
#pragma once

#include "ir/graph.h"

namespace retrograd::ir {

/// Whether splice() takes the graph: no effects, no symbols, no handles.
bool can_be_spliced(const Graph& graph);

/// Appends the nodes of `what` to `to`, with inputs[i], a value of `to` of the same type, for its input number i. Returns what its outputs are
/// in `to`, whose own outputs stay as they are.
std::vector<ValueId> splice(Graph& to, const Graph& what, std::span<const ValueId> inputs);

}  // namespace retrograd::ir
