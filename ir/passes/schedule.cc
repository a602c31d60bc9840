// schedule: moves pure nodes to where less memory is held at the peak. Effects keep their order, the nodes of a group
// stay together. If the new order has no clearly lower peak, the old one stays.
//
// List scheduling from the end of the graph, of units, which are groups and nodes that are in none. A unit is ready
// when all that must follow it has been placed. Of the ready ones, the next to be placed (before all placed so far) is
// the one that adds least to the memory that is live before it: the bytes of operands that were not live yet, less
// those of its results, which are not live before it. Of equal ones it is the last in the old order. In this direction
// units are placed as late as possible: a constant directly before its use, and a unit that makes much from little
// after one that makes little from much. The ready ones are in a heap, a unit again when an operand of it became live:
// O(e log e) for e operands.
//
// A second order looks some units further. An optimizer's step needs a gradient, and the product that makes it needs
// less memory: for a moment more is live than afterwards. Of such chains those with the largest relief come last, while
// little else is live (Liu, On the storage requirement in the out-of-core multifrontal method, 1986: of independent
// segments, by peak less residue). The order with the lower peak is used.
//
// Peaks are those of ir/passes/lifetimes.h; ir/passes/order_constraints.h has the rules of order.
#include <algorithm>
#include <queue>

#include "ir/passes/order_constraints.h"
#include "ir/passes/reorder.h"

namespace retrograd::inline v0::ir {
namespace {

class Scheduler {
 public:
  enum class Rule { least, relief };

  Scheduler(const Graph& graph, const Lifetimes& lifetimes, std::span<const OutsideWrite> writes, Rule rule)
      : graph_(graph),
        lifetimes_(lifetimes),
        rule_(rule),
        units_(graph),
        before_(units_.size(), constraints(writes)),
        users_(lifetimes.blocks.size(), uses()),
        waits_for_(units_.size()),
        cost_(units_.size()),
        live_(lifetimes.blocks.size()),
        seen_(lifetimes.blocks.size(), -1) {}

  /// The nodes in their new order.
  std::vector<int32_t> run() {
    for (size_t b = 0; b < live_.size(); ++b) live_[b] = lifetimes_.blocks[b].last == lifetimes_.nodes;
    for (size_t u = 0; u < units_.size(); ++u)
      for (int32_t earlier : before_[u]) ++waits_for_[static_cast<size_t>(earlier)];
    for (size_t u = 0; u < units_.size(); ++u)
      if (waits_for_[u] == 0) push(static_cast<int32_t>(u));
    std::vector<int32_t> order;
    while (!ready_.empty()) {
      const Entry next = ready_.top();
      ready_.pop();
      if (waits_for_[static_cast<size_t>(next.unit)] != 0 ||
          cost_[static_cast<size_t>(next.unit)] != next.cost)
        continue;
      place(next.unit);
      for (int32_t n = units_.begins[static_cast<size_t>(next.unit) + 1];
           n-- > units_.begins[static_cast<size_t>(next.unit)];)
        order.push_back(n);
    }
    std::ranges::reverse(order);
    return order;
  }

 private:
  static constexpr int kPlaced = -1;
  static constexpr int kFar = 8;      // number of units that are examined in advance
  static constexpr size_t kFew = 64;  // largest number of predecessors for which that is done
  struct Entry {
    int64_t relief, cost;
    int32_t unit;
    bool operator<(const Entry& other) const {  // the heap gives the greatest
      if (relief != other.relief && cost > 0 && other.cost > 0) return relief < other.relief;
      return cost != other.cost ? cost > other.cost : unit < other.unit;
    }
  };

  int32_t block(ValueId v) const { return v == kNoValue ? -1 : lifetimes_.block_of[static_cast<size_t>(v)]; }
  int64_t bytes(int32_t b) const { return lifetimes_.blocks[static_cast<size_t>(b)].bytes; }

  Pairs constraints(std::span<const OutsideWrite> writes) const {
    Pairs pairs = order_constraints(graph_, writes);
    for (auto& [unit, earlier] : pairs) {
      unit = units_.of[static_cast<size_t>(unit)];
      earlier = units_.of[static_cast<size_t>(earlier)];
    }
    std::erase_if(pairs, [](const auto& pair) { return pair.first == pair.second; });
    return pairs;
  }
  /// (block, a unit that uses it).
  Pairs uses() const {
    Pairs pairs;
    for (size_t i = 0; i < graph_.nodes().size(); ++i)
      for (ValueId v : graph_.operands(graph_.nodes()[i]))
        if (const int32_t b = block(v); b >= 0) pairs.push_back({b, units_.of[i]});
    return pairs;
  }

  // Calls f(block) for each block that the unit makes.
  template <class F>
  void for_each_made(int32_t unit, F f) const {
    for (const Node& node : units_.nodes(graph_, unit))
      for (int r = 0; r < node.results && node.op->is(Trait::pure) && !node.op->is(Trait::view); ++r)
        if (const int32_t b = block(node.first_result + r); b >= 0) f(b);
  }
  // Calls f(block) once for each block that must be live before the unit.
  template <class F>
  void for_each_needed(int32_t unit, F f) {
    const int32_t mark = ++mark_;
    for_each_made(unit, [&](int32_t b) { seen_[static_cast<size_t>(b)] = mark; });
    for (const Node& node : units_.nodes(graph_, unit))
      for (ValueId v : graph_.operands(node))
        if (const int32_t b = block(v); b >= 0 && std::exchange(seen_[static_cast<size_t>(b)], mark) != mark)
          f(b);
  }

  int64_t cost(int32_t unit) {
    int64_t sum = 0;
    for_each_needed(unit, [&](int32_t b) { sum += live_[static_cast<size_t>(b)] ? 0 : bytes(b); });
    for_each_made(unit, [&](int32_t b) { sum -= live_[static_cast<size_t>(b)] ? bytes(b) : 0; });
    return sum;
  }

  // How much less memory is live after placing the unit and a chain of units that can then be placed before it,
  // compared with the unit alone.
  int64_t relief(int32_t unit) {
    int64_t sum = cost(unit), least = sum;
    const int64_t alone = sum;
    undo_.clear();
    for (int step = 0; step < kFar && before_[static_cast<size_t>(unit)].size() <= kFew; ++step) {
      turn(unit);
      int32_t next = -1;
      int64_t next_cost = 0;
      const auto earlier = before_[static_cast<size_t>(unit)];
      for (int32_t e : earlier) {
        if (std::ranges::count(earlier, e) != waits_for_[static_cast<size_t>(e)]) continue;
        if (const int64_t its = cost(e); next < 0 || its < next_cost) next = e, next_cost = its;
      }
      if (next < 0) break;
      sum += next_cost;
      least = std::min(least, sum);
      unit = next;
    }
    for (size_t i = undo_.size(); i-- > 0;) live_[static_cast<size_t>(undo_[i])] ^= 1;
    return alone - least;
  }
  // Switches the live blocks from those after the unit to those before it; noted in undo_.
  void turn(int32_t unit) {
    const size_t begin = undo_.size();
    for_each_made(unit, [&](int32_t b) {
      if (live_[static_cast<size_t>(b)]) undo_.push_back(b);
    });
    for_each_needed(unit, [&](int32_t b) {
      if (!live_[static_cast<size_t>(b)]) undo_.push_back(b);
    });
    for (size_t i = begin; i < undo_.size(); ++i) live_[static_cast<size_t>(undo_[i])] ^= 1;
  }

  void push(int32_t unit) {
    cost_[static_cast<size_t>(unit)] = cost(unit);
    ready_.push({rule_ == Rule::relief ? relief(unit) : 0, cost_[static_cast<size_t>(unit)], unit});
  }

  void place(int32_t unit) {
    waits_for_[static_cast<size_t>(unit)] = kPlaced;
    for_each_made(unit, [&](int32_t b) { live_[static_cast<size_t>(b)] = 0; });
    needed_.clear();
    for_each_needed(unit, [&](int32_t b) {
      if (!std::exchange(live_[static_cast<size_t>(b)], 1)) needed_.push_back(b);
    });
    for (int32_t b : needed_)
      for (int32_t user : users_[static_cast<size_t>(b)])
        if (waits_for_[static_cast<size_t>(user)] == 0) push(user);
    for (int32_t earlier : before_[static_cast<size_t>(unit)])
      if (--waits_for_[static_cast<size_t>(earlier)] == 0) push(earlier);
  }

  const Graph& graph_;
  const Lifetimes& lifetimes_;
  const Rule rule_;
  const Units units_;
  Lists before_, users_;
  std::vector<int32_t> waits_for_;      // number of units that must follow a unit and are not placed; kPlaced
  std::vector<int64_t> cost_;           // of ready units: entries with another cost are out of date
  std::vector<uint8_t> live_;           // of each block: live before all that is placed
  std::vector<int32_t> seen_, needed_;  // of blocks: the last mark; the blocks that become live
  std::vector<int32_t> undo_;           // blocks that a trial has switched
  int32_t mark_ = 0;
  std::priority_queue<Entry> ready_;
};

}  // namespace

// A peak that is lower by less than 1/kGain is not worth another order: neighbours in the program are often in the
// caches, too.
constexpr int64_t kGain = 50;

bool schedule(Graph& graph, const PassInput& input, Remap& remap) {
  Orders orders(graph, input);
  const Lifetimes apart = orders.apart();
  int64_t peak = orders.peak();
  std::vector<int32_t> order;
  for (const auto rule : {Scheduler::Rule::least, Scheduler::Rule::relief}) {
    std::vector<int32_t> found = Scheduler(graph, apart, input.writes, rule).run();
    RG_ASSERT(found.size() == graph.nodes().size());
    if (const int64_t its_peak = orders.peak(found); its_peak < peak - peak / kGain) {
      peak = its_peak;
      order = std::move(found);
    }
  }
  if (order.empty()) return false;
  remap = reorder(graph, order);
  return true;
}

}  // namespace retrograd::ir
