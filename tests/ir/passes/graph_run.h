// A run of any graph, for comparing graphs: values for its inputs are made up from a seed, and all that
// can be seen from outside is written down as lines: what hooks are given, outputs, gradients of leaves
// and boxes, and the inputs at the end. Values go in as type, strides and bits; NaNs are all alike.
//
// Hooks do what hooks may do: scale, write into what they are given, into inputs and into gradients that
// have arrived. So a pass that lets a write be seen elsewhere, or reads at another time, gives other
// lines.
#pragma once

#include <functional>

#include "retrograd/retrograd.h"

namespace graph_run {

namespace rg = retrograd;

using Lines = std::vector<std::string>;

/// False for graphs with inputs that cannot be made up: functions of the user's, pairs of saved-tensor
/// hooks, permutations.
bool can_run(const rg::ir::Graph& graph);

/// An exception ends the run with a line. `any_layout`: some inputs are not row-major.
Lines run(const rg::ir::Graph& graph, uint64_t seed, bool any_layout);

}  // namespace graph_run
