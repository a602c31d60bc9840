// Random graphs that passes have something to do with: nodes that say the same twice, chains that cancel,
// views, repeated operands, conversions, draws, and between them unpacks, hooks, accumulations and
// retained gradients. All graphs are well made; a few cannot run.
#pragma once

#include "ir/graph.h"

namespace random_graph {

retrograd::ir::Graph make(uint64_t seed);

}  // namespace random_graph
