// See ir/passes/reorder.h.
#include "ir/passes/reorder.h"

namespace retrograd::inline v0::ir {
namespace {

void number_groups(Graph& graph) {
  int32_t before = -1, now = -1;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const int32_t group = graph.nodes()[n].group;
    if (group < 0) continue;
    now += group != before;
    before = group;
    graph.set_group(n, now);
  }
}

}  // namespace

Units::Units(const Graph& graph) {
  int32_t group = -1;
  for (const Node& node : graph.nodes()) {
    if (node.group < 0 || node.group != group) begins.push_back(static_cast<int32_t>(of.size()));
    group = node.group;
    of.push_back(static_cast<int32_t>(begins.size()) - 1);
  }
  begins.push_back(static_cast<int32_t>(of.size()));
}

Orders::Orders(const Graph& graph, const PassInput& input)
    : graph_(graph), options_{.values = input.values, .writes = input.writes, .given = input.given} {
  if (!input.executor) return;
  groups_.emplace(graph, *input.executor, input.values);
  options_.groups = &*groups_;
}

int64_t Orders::peak(std::span<const int32_t> order) {
  options_.order = order;
  return lifetimes(graph_, options_).peak_bytes();
}

Lifetimes Orders::apart() {
  LifetimeOptions options = options_;
  options.order = {};
  options.in_place = false;
  return lifetimes(graph_, options);
}

Remap reorder(Graph& graph, std::span<const int32_t> order) {
  Rewriter rewriter(graph);
  for (int32_t node : order) rewriter.keep(static_cast<size_t>(node));
  Remap remap = rewriter.finish();
  number_groups(graph);
  return remap;
}

}  // namespace retrograd::ir
