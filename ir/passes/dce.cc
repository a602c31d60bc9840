// dce: dead code elimination. Pure nodes whose results nobody uses are dropped, and then those that only they used.
// Kept are effects, outputs, nodes that may refuse their operands (Trait::checks), and inputs, so that bindings keep
// their positions.
//
// One backward pass: a node is needed if it is not pure or one of its results is needed; then its operands are needed,
// too.
#include <algorithm>

#include "ir/passes/pass.h"

namespace retrograd::inline v0::ir {

bool dce(Graph& graph, const PassInput&, Remap& remap) {
  const auto& nodes = graph.nodes();
  std::vector<uint8_t> needed_value(static_cast<size_t>(graph.value_count())), needed_node(nodes.size());
  const auto need = [&](ValueId v) {
    if (v != kNoValue) needed_value[static_cast<size_t>(v)] = 1;
  };
  std::ranges::for_each(graph.outputs(), need);
  size_t dead = 0;
  for (size_t i = nodes.size(); i-- > 0;) {
    bool needed = !nodes[i].op->is(Trait::pure) || nodes[i].op->is(Trait::checks);
    for (int r = 0; r < nodes[i].results; ++r)
      needed |= needed_value[static_cast<size_t>(nodes[i].first_result + r)] != 0;
    needed_node[i] = needed;
    dead += !needed;
    if (needed) std::ranges::for_each(graph.operands(nodes[i]), need);
  }
  if (dead == 0) return false;
  Rewriter rewriter(graph);
  for (size_t i = 0; i < nodes.size(); ++i)
    if (needed_node[i]) rewriter.keep(i);
  remap = rewriter.finish();
  return true;
}

}  // namespace retrograd::ir
