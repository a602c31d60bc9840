// See ir/passes/fuse_within.h. The pass `fuse` is here, too.
#include "ir/passes/fuse_within.h"

#include <algorithm>

#include "ir/passes/pass.h"

namespace retrograd::inline v0::ir {
namespace {

constexpr int kRounds = 10;      // then steps are cut into single nodes
constexpr int kMostRounds = 24;  // then there are no groups

// The nodes before which all groups are emitted.
class Cuts {
 public:
  Cuts(const Graph& graph, const Executor& executor)
      : graph_(graph), executor_(executor), cut_(graph.nodes().size() + 1) {}
  bool operator[](size_t node) const { return cut_[node] != 0; }

  /// Cuts the step of these nodes, by number; `all`: into single nodes. False if there is nothing left to cut.
  bool add(std::span<const uint32_t> step, bool all) {
    const size_t first = step.front(), behind = step.back() + size_t{1};
    if (all) return cut_each(step);
    const bool apart = cut(first) | cut(behind);
    return apart || (step.size() > 1 && cut(step[middle(step)]));
  }

 private:
  // The position of its first reduction, whose temporary memory may be the excess; else the middle.
  size_t middle(std::span<const uint32_t> step) const {
    const auto reduces = [&](uint32_t n) {
      return fused_role(graph_, graph_.nodes()[n], executor_) != FusedRole::elementwise;
    };
    const auto first = static_cast<size_t>(std::ranges::find_if(step, reduces) - step.begin());
    return first == 0 || first == step.size() ? step.size() / 2 : first;
  }
  bool cut(size_t node) { return !std::exchange(cut_[node], 1); }
  bool cut_each(std::span<const uint32_t> step) {
    bool any = false;
    for (uint32_t n : step) any |= cut(n) | cut(n + size_t{1});
    return any;
  }
  const Graph& graph_;
  const Executor& executor_;
  std::vector<uint8_t> cut_;
};

// Cuts each step at which more than `most` bytes are live.
enum class Fit { yes, cut, no };
Fit cut_steps(const Grouping& grouping, std::span<const int64_t> live, int64_t most, bool all, Cuts& cuts) {
  Fit fit = Fit::yes;
  const std::span<const uint32_t> order = grouping.order;
  for (size_t first = 0, next = 0; first < order.size(); first = next) {
    bool above = false;
    do above |= live[next++] > most;
    while (next < order.size() && grouping.group[first] >= 0 &&
           grouping.group[next] == grouping.group[first]);
    if (!above) continue;
    if (cuts.add(order.subspan(first, next - first), all))
      fit = Fit::cut;
    else if (fit == Fit::yes)
      fit = Fit::no;
  }
  return fit;
}

}  // namespace

Grouping find_groups_within_peak(const Graph& graph, const FuseOptions& options, LifetimeOptions memory) {
  Grouping grouping = find_groups(graph, options);
  if (grouping.groups == 0) return grouping;
  GroupMemories kernels(graph, options.executor, memory.values, options.kept);
  memory.groups = &kernels;
  std::vector<int32_t> joined;  // the groups that exist already
  for (const Node& node : graph.nodes()) joined.push_back(node.op->is(Trait::updates) ? node.group : -1);
  memory.group = joined;
  const int64_t most = lifetimes(graph, memory).peak_bytes();
  Cuts cuts(graph, options.executor);
  FuseOptions cut_options = options;
  cut_options.stops = [&](size_t node) { return cuts[node] || (options.stops && options.stops(node)); };
  for (int round = 0; round < kMostRounds; ++round) {
    const std::vector<int32_t> order(grouping.order.begin(), grouping.order.end());
    memory.order = order;
    memory.group = grouping.group;
    const std::vector<int64_t> live = lifetimes(graph, memory).live_bytes();
    const Fit fit = cut_steps(grouping, live, most, round >= kRounds, cuts);
    if (fit == Fit::yes) return grouping;
    if (fit == Fit::no) break;
    grouping = find_groups(graph, cut_options);
  }
  return {};
}

bool fuse(Graph& graph, const PassInput& input, Remap& remap) {
  if (!input.executor) return false;
  const Grouping grouping = find_groups_within_peak(
      graph,
      {.executor = *input.executor,
       // On a device a sum of columns makes another kernel of its group: not measured.
       .looks_ahead = !input.executor->records_launches()},
      {.values = input.values, .writes = input.writes, .given = input.given});
  const bool same = std::ranges::is_sorted(grouping.order) &&
                    std::ranges::equal(grouping.group, graph.nodes(), {}, {}, &Node::group);
  if (grouping.groups == 0 || same) return false;
  remap = regroup(graph, grouping);
  return true;
}

}  // namespace retrograd::ir
