// schedule: pure nodes move to where less memory is held at the peak. Effects keep their order. If the
// new order has no clearly lower peak, the old one stays.
//
// List scheduling from the end of the graph: a node is ready when all that must come after it has been
// placed, and of the ready ones that is placed next (before all placed so far) which adds least to the
// memory that is live before it: the bytes of operands that were not live yet, less those of its results,
// which are not live before it. Of equal ones the last in the old order. Going backwards, nodes come as
// late as they are needed: a constant directly before its use, and what makes much of little after what
// makes little of much. The ready ones lie in a heap, a node again when an operand of it became live: O(e
// log e) for e operands.
//
// Peaks are those of ir/passes/lifetimes.h; what must come before what is said in
// ir/passes/order_constraints.h.
#include <algorithm>
#include <queue>

#include "ir/passes/lifetimes.h"
#include "ir/passes/order_constraints.h"
#include "ir/passes/pass.h"

namespace retrograd::ir {
namespace {

class Scheduler {
 public:
  Scheduler(const Graph& graph, const Lifetimes& lifetimes, std::span<const OutsideWrite> writes)
      : graph_(graph),
        lifetimes_(lifetimes),
        before_(graph.nodes().size(), order_constraints(graph, writes)),
        users_(lifetimes.blocks.size(), uses()),
        waits_for_(graph.nodes().size()),
        cost_(waits_for_.size()),
        live_(lifetimes.blocks.size()) {}

  /// The nodes in their new order.
  std::vector<int32_t> run() {
    for (size_t b = 0; b < live_.size(); ++b) live_[b] = lifetimes_.blocks[b].last == lifetimes_.nodes;
    for (size_t i = 0; i < waits_for_.size(); ++i)
      for (int32_t earlier : before_[i]) ++waits_for_[static_cast<size_t>(earlier)];
    for (size_t i = 0; i < waits_for_.size(); ++i)
      if (waits_for_[i] == 0) push(static_cast<int32_t>(i));
    std::vector<int32_t> order;
    while (!ready_.empty()) {
      const Entry next = ready_.top();
      ready_.pop();
      if (waits_for_[static_cast<size_t>(next.node)] != 0 ||
          cost_[static_cast<size_t>(next.node)] != next.cost)
        continue;
      place(next.node);
      order.push_back(next.node);
    }
    std::ranges::reverse(order);
    return order;
  }

 private:
  static constexpr int kPlaced = -1;
  struct Entry {
    int64_t cost;
    int32_t node;
    bool operator<(const Entry& other) const {  // the heap gives the greatest
      return cost != other.cost ? cost > other.cost : node < other.node;
    }
  };

  int32_t block(ValueId v) const { return v == kNoValue ? -1 : lifetimes_.block_of[static_cast<size_t>(v)]; }
  int64_t bytes(int32_t b) const { return lifetimes_.blocks[static_cast<size_t>(b)].bytes; }

  /// (block, a node that uses it).
  Pairs uses() const {
    Pairs pairs;
    for (size_t i = 0; i < graph_.nodes().size(); ++i)
      for (ValueId v : graph_.operands(graph_.nodes()[i]))
        if (const int32_t b = block(v); b >= 0) pairs.push_back({b, static_cast<int32_t>(i)});
    return pairs;
  }
  static bool makes_block(const OpInfo& op) { return op.is(Trait::pure) && !op.is(Trait::view); }

  int64_t cost(int32_t number) const {
    const Node& node = graph_.nodes()[static_cast<size_t>(number)];
    const auto operands = graph_.operands(node);
    int64_t sum = 0;
    for (size_t k = 0; k < operands.size(); ++k) {
      const int32_t b = block(operands[k]);
      const auto is_same = [&](ValueId other) { return block(other) == b; };
      if (b >= 0 && !live_[static_cast<size_t>(b)] && std::ranges::none_of(operands.first(k), is_same))
        sum += bytes(b);
    }
    for (int r = 0; r < node.results && makes_block(*node.op); ++r)
      if (const int32_t b = block(node.first_result + r); live_[static_cast<size_t>(b)]) sum -= bytes(b);
    return sum;
  }

  void push(int32_t node) {
    cost_[static_cast<size_t>(node)] = cost(node);
    ready_.push({cost_[static_cast<size_t>(node)], node});
  }

  void place(int32_t number) {
    const Node& node = graph_.nodes()[static_cast<size_t>(number)];
    waits_for_[static_cast<size_t>(number)] = kPlaced;
    for (int r = 0; r < node.results && makes_block(*node.op); ++r)
      live_[static_cast<size_t>(block(node.first_result + r))] = 0;
    for (ValueId v : graph_.operands(node)) {
      const int32_t b = block(v);
      if (b < 0 || live_[static_cast<size_t>(b)]) continue;
      live_[static_cast<size_t>(b)] = 1;
      for (int32_t user : users_[static_cast<size_t>(b)])
        if (waits_for_[static_cast<size_t>(user)] == 0) push(user);
    }
    for (int32_t earlier : before_[static_cast<size_t>(number)])
      if (--waits_for_[static_cast<size_t>(earlier)] == 0) push(earlier);
  }

  const Graph& graph_;
  const Lifetimes& lifetimes_;
  Lists before_, users_;
  std::vector<int32_t> waits_for_;  // how many that must come after a node are not placed; kPlaced
  std::vector<int64_t> cost_;       // of ready nodes: entries with another cost are out of date
  std::vector<uint8_t> live_;       // of each block, before all that is placed
  std::priority_queue<Entry> ready_;
};

}  // namespace

// A lower peak by less than one part of so many is not worth another order: what lies beside each other in
// the program is in the caches, too.
constexpr int64_t kGain = 50;

bool schedule(Graph& graph, const PassInput& input, Remap& remap) {
  LifetimeOptions options{.values = input.values, .writes = input.writes};
  const int64_t peak = lifetimes(graph, options).peak_bytes();
  options.in_place = false;
  const std::vector<int32_t> order = Scheduler(graph, lifetimes(graph, options), input.writes).run();
  RG_ASSERT(order.size() == graph.nodes().size());
  options.in_place = true;
  options.order = order;
  const int64_t new_peak = lifetimes(graph, options).peak_bytes();
  if (new_peak >= peak - peak / kGain) return false;
  Rewriter rewriter(graph);
  for (int32_t node : order) rewriter.keep(static_cast<size_t>(node));
  remap = rewriter.finish();
  return true;
}

}  // namespace retrograd::ir
