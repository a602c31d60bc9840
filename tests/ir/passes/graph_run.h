// A run of any graph, for comparing graphs: values for its inputs are made from a seed, and everything that is visible
// from outside is written down as lines: arguments of hooks, outputs, gradients of leaves and boxes, and the inputs at
// the end. Values are written as type, strides and bits; all NaNs are equal.
//
// Hooks do everything that hooks may do: scale, write into their arguments, into inputs and into gradients that have
// arrived. So a pass that makes a write visible elsewhere, or reads at another time, gives different lines.
#pragma once

#include <functional>

#include "retrograd/retrograd.h"

namespace graph_run {

namespace rg = retrograd;

using Lines = std::vector<std::string>;

/// False for graphs with inputs that cannot be made up: user-defined functions, pairs of saved-tensor hooks,
/// permutations.
bool can_run(const rg::ir::Graph& graph);

/// An exception ends the run with a line. `any_layout`: some inputs are not row-major.
Lines run(const rg::ir::Graph& graph, uint64_t seed, bool any_layout);

}  // namespace graph_run
