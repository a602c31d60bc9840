// Random graphs with work for passes: nodes that compute the same, chains that cancel, views, repeated operands,
// conversions, draws, and in between unpacks, hooks, accumulations and retained gradients. All graphs are valid; a few
// cannot run.
#pragma once

#include "ir/graph.h"

namespace random_graph {

retrograd::ir::Graph make(uint64_t seed);

}  // namespace random_graph
