// early_updates: moves an optimizer's update (Trait::updates) directly after the last node that it must follow, usually
// the one that gives its gradient. There the gradient is in the caches, and also the parameter, which the backward has
// just used. At the end of a step both would be read from memory again, and all gradients would be held until then.
//
// ir/passes/order_constraints.h has the rules of order. In addition, an update does not pass an effect, or a node that
// may refuse its operands (Trait::checks, Trait::random): when a step fails there, later updates must not have
// happened. Joined updates stay together where they are (ir/passes/join_updates.h). An order with a higher peak is not
// taken.
#include <algorithm>
#include <numeric>

#include "ir/passes/order_constraints.h"
#include "ir/passes/reorder.h"

namespace retrograd::inline v0::ir {
namespace {

bool is_early(const Node& node) { return node.group < 0 && node.op->is(Trait::updates); }

// For each node the number of the node after which it is placed, early updates in their old order. A node that is not
// early has its own number; an early update has that of the last node it must follow that is not early itself, or -1.
std::vector<int32_t> find_places(const Graph& graph, std::span<const OutsideWrite> writes) {
  const auto& nodes = graph.nodes();
  const Units units(graph);
  const auto end = [&](size_t i) { return units.last_node(units.of[i]); };
  const Lists earlier(nodes.size(), order_constraints(graph, writes));
  std::vector<int32_t> behind(nodes.size());
  int32_t barrier = -1;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const OpInfo& op = *nodes[i].op;
    behind[i] = static_cast<int32_t>(i);
    if (is_early(nodes[i])) {
      behind[i] = barrier;
      for (const int32_t e : earlier[i])
        behind[i] = std::max(behind[i], behind[static_cast<size_t>(end(static_cast<size_t>(e)))]);
    }
    if (!op.is(Trait::pure) || op.is(Trait::checks) || op.is(Trait::random)) barrier = end(i);
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
  Orders orders(graph, input);
  if (orders.peak(order) > orders.peak()) return false;
  remap = reorder(graph, order);
  return true;
}

}  // namespace retrograd::ir
