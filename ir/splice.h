// splice: appends the nodes of one graph to another, for a plan that runs both.
//
// Inputs of the second graph become values of the first. Nodes keep their lines and origins. Both graphs must have pure
// nodes without symbols only: handles and numbers of runs would need bindings of both.
#pragma once

#include "ir/graph.h"

namespace retrograd::inline v0::ir {

/// Whether splice() takes the graph: no effects, no symbols, no handles.
bool can_be_spliced(const Graph& graph);

/// Appends the nodes of `what` to `to`. inputs[i], a value of `to` of the same type, replaces input i. Returns the
/// values in `to` of the outputs of `what`; the outputs of `to` are unchanged.
std::vector<ValueId> splice(Graph& to, const Graph& what, std::span<const ValueId> inputs);

}  // namespace retrograd::ir
