// fold_unpack: in a graph that holds the forward as well, an unpack of a slot without a pair of saved-tensor hooks gives the very value that
// was saved. Such a node names no slot but has that value as its operand (docs/ir.md); here it goes, and the value takes its place. An
// unpack of a slot, with or without a pair, stays.
#include <algorithm>

#include "ir/bookkeeping.h"
#include "ir/passes/pass.h"

namespace retrograd::ir {
namespace {

bool gives_its_operand(const Node& node) { return node.op == &ops::unpack && node.operands == 1; }

}  // namespace

bool fold_unpack(Graph& graph, const PassInput&, Remap& remap) {
  const auto& nodes = graph.nodes();
  if (std::ranges::none_of(nodes, gives_its_operand)) return false;
  Rewriter rewriter(graph);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (gives_its_operand(nodes[i]))
      rewriter.replace(nodes[i].first_result, rewriter.now(graph.operands(nodes[i])[0]));
    else
      rewriter.keep(i);
  }
  remap = rewriter.finish();
  return true;
}

}  // namespace retrograd::ir
