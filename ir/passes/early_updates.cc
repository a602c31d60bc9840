// early_updates: an optimizer's update (Trait::updates) comes right behind the last node that it must come after, its
// gradient mostly. There the gradient is in the caches, and the parameter that the backward has just multiplied with;
// at the end of a step both would come from memory once more, and all gradients be held until then.
//
// What must come before what is said in ir/passes/order_constraints.h. Nor does an update pass a node that may refuse its
// operands (Trait::checks): where a step fails, what it had not come to is as it was. Joined updates stay together where
// they are (ir/passes/join_updates.h).
#include <algorithm>
#include <numeric>

#include "ir/passes/lifetimes.h"
#include "ir/passes/order_constraints.h"
#include "ir/passes/pass.h"

namespace retrograd::ir {
namespace {

bool is_early(const Node& node) { return node.group < 0 && node.op->is(Trait::updates); }

// Of each node which one it is to stand behind: the one before it, which is said by its own number; an early update the
// last that it must come after, or -1.
std::vector<int32_t> find_places(const Graph& graph, std::span<const OutsideWrite> writes) {
  const auto& nodes = graph.nodes();
  std::vector<int32_t> behind(nodes.size(), -1), end_of_group(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;) {
    const bool ends = nodes[i].group < 0 || i + 1 == nodes.size() || nodes[i + 1].group != nodes[i].group;
    end_of_group[i] = ends ? static_cast<int32_t>(i) : end_of_group[i + 1];
  }
  const auto stand_behind = [&](int32_t node, int32_t earlier) {
    int32_t& last = behind[static_cast<size_t>(node)];
    last = std::max(last, end_of_group[static_cast<size_t>(earlier)]);
  };
  for (const auto& [node, earlier] : order_constraints(graph, writes)) stand_behind(node, earlier);
  int32_t check = -1;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto number = static_cast<int32_t>(i);
    if (!is_early(nodes[i]))
      behind[i] = number;
    else if (check >= 0)
      stand_behind(number, check);
    if (nodes[i].op->is(Trait::checks)) check = number;
  }
  return behind;
}

}  // namespace

bool early_updates(Graph& graph, const PassInput& input, Remap& remap) {
  if (std::ranges::none_of(graph.nodes(), is_early)) return false;
  const std::vector<int32_t> behind = find_places(graph, input.writes);
  std::vector<int32_t> order(behind.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int32_t i) { return behind[static_cast<size_t>(i)]; });
  if (std::ranges::is_sorted(order)) return false;
  LifetimeOptions options{.values = input.values, .writes = input.writes, .given = input.given};
  const int64_t peak = lifetimes(graph, options).peak_bytes();
  options.order = order;
  if (lifetimes(graph, options).peak_bytes() > peak) return false;
  Rewriter rewriter(graph);
  for (int32_t node : order) rewriter.keep(static_cast<size_t>(node));
  remap = rewriter.finish();
  return true;
}

}  // namespace retrograd::ir
