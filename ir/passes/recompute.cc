// recompute: a value that is held over the peak, without being used there, is computed again behind it. The same ops on
// the same operands give the same bits.
//
// Candidates are results of elementwise ops, constants and views that are used before and after the node with the most
// live bytes. Their operands must be live there anyway, or be recomputed as well (Ways). All candidates of a round are
// dropped together; a node that uses one after the peak gets a copy of the nodes that compute it. That moves the peak, so
// there are several rounds, each with a lower peak: one that gains too little is not taken. It takes time, so nothing is
// done where all of them together gain too little.
//
// Memory that code outside of the graph may reach is read between the same effects as before
// (ir/passes/memory_classes.h), and before the value that a run writes there is computed. Limits: a value needs at most
// kMostNodes nodes, and is no output. In a function and its backward, which are two graphs,
// ir/passes/recompute_saved.h does the same with what is saved. Start reading at recompute().
#include <algorithm>

#include "ir/passes/lifetimes.h"
#include "ir/passes/node_copies.h"
#include "ir/passes/pass.h"
#include "ir/passes/recompute_saved.h"

namespace retrograd::inline v0::ir {
namespace {

constexpr int kMostRounds = 4;
constexpr int64_t kLeastGain = 64;   // a round must lower the peak by one part in so many,
constexpr int64_t kWorthIt = 5;      // all rounds together by this, for the time that it takes
constexpr int64_t kLeastShare = 64;  // a value smaller than one part of the largest in so many stays

size_t at(int32_t i) { return static_cast<size_t>(i); }

// Where the values of a graph are used, with respect to one node: the peak.
class Uses {
 public:
  static constexpr int32_t kNever = -1;

  Uses(const Graph& graph, int32_t peak) : of_(at(graph.value_count())) {
    for (int32_t n = 0; n < std::ssize(graph.nodes()); ++n) {
      const Node& node = graph.nodes()[at(n)];
      for (int r = 0; r < node.results; ++r) of_[at(node.first_result + r)].up_to_peak = n;
      for (ValueId v : graph.operands(node)) {
        if (v == kNoValue) continue;
        Of& of = of_[at(v)];
        if (n <= peak)
          of.up_to_peak = n;
        else if (of.behind == kNever)
          of.behind = n;
      }
    }
  }
  /// The last node up to the peak that makes or uses the value.
  int32_t up_to_peak(ValueId v) const { return of_[at(v)].up_to_peak; }
  /// The first node after the peak that uses it.
  int32_t behind(ValueId v) const { return of_[at(v)].behind; }

 private:
  struct Of {
    int32_t up_to_peak = kNever, behind = kNever;
  };
  std::vector<Of> of_;
};

// How each value can be had after the peak.
class Ways {
 public:
  /// `peak`: of `lifetimes`.
  Ways(const Graph& graph, const Lifetimes& lifetimes, std::span<const OutsideWrite> writes, int32_t peak)
      : graph_(graph),
        lifetimes_(lifetimes),
        peak_(peak),
        least_bytes_(std::ranges::max(lifetimes.blocks, {}, &Block::bytes).bytes / kLeastShare),
        classes_(graph),
        uses_(graph, peak),
        ways_(at(graph.value_count())),
        goes_(ways_.size()) {
    find_inputs(writes);
    find_segment_ends();
    for (int32_t n = 0; n < peak; ++n) find(n);
  }

  bool any() const { return std::ranges::find(goes_, true) != goes_.end(); }
  bool goes(ValueId v) const { return goes_[at(v)]; }
  /// Whether it is an input or live after the peak.
  bool is_at_hand(ValueId v) const { return !goes_[at(v)] && ways_[at(v)].known && ways_[at(v)].nodes == 0; }

 private:
  struct Way {
    bool known = false;
    int nodes = 0;      // that compute it from values at hand
    int32_t until = 0;  // the last node before which it may be computed
  };

  // An input may be read before the node that makes the value which is then written to its memory.
  void find_inputs(std::span<const OutsideWrite> writes) {
    for (const Input& in : graph_.inputs())
      if (in.kind == Input::Kind::tensor)
        ways_[at(in.value)] = {true, 0, static_cast<int32_t>(graph_.nodes().size())};
    const std::vector<int32_t> producers = producers_of(graph_);
    for (const OutsideWrite& w : writes) {
      const int32_t made = producers[at(graph_.outputs()[at(w.output)])];
      int32_t& until = ways_[at(graph_.inputs()[at(w.input)].value)].until;
      if (made >= 0) until = std::min(until, made);
    }
  }

  void find_segment_ends() {
    const size_t nodes = graph_.nodes().size();
    segment_end_.resize(nodes);
    for (size_t n = nodes; n-- > 0;) {
      const bool is_last = n + 1 == nodes || classes_.segment(n + 1) != classes_.segment(n);
      segment_end_[n] = is_last ? static_cast<int32_t>(n) : segment_end_[n + 1];
    }
  }

  void find(int32_t n) {
    const Node& node = graph_.nodes()[at(n)];
    const Way way = way_through(n);
    for (int r = 0; r < node.results; ++r) {
      const ValueId v = node.first_result + r;
      goes_[at(v)] = way.known && may_go(v) && uses_.behind(v) <= way.until;
      if (goes_[at(v)])
        ways_[at(v)] = {true, 0, way.until};  // computed once, it is there
      else if (uses_.behind(v) != Uses::kNever)
        ways_[at(v)] = {true, 0, static_cast<int32_t>(graph_.nodes().size())};
      else
        ways_[at(v)] = way;
    }
  }

  Way way_through(int32_t n) {
    const Node& node = graph_.nodes()[at(n)];
    Way way{is_cheap(node), 1, static_cast<int32_t>(graph_.nodes().size())};
    for (ValueId v : graph_.operands(node)) {
      if (v == kNoValue) continue;
      const Way& operand = ways_[at(v)];
      way.known = way.known && operand.known;
      way.nodes += operand.nodes;
      way.until = std::min(way.until, operand.until);
      if (reads_memory(*node.op) && !classes_.is_private(v))
        way.until = std::min(way.until, segment_end_[at(n)]);
    }
    way.known = way.known && way.nodes <= Recompute::kMostNodes;
    return way;
  }

  // Whether its memory is held over the peak for later uses alone.
  bool may_go(ValueId v) {
    const int32_t block = lifetimes_.block_of[at(v)];
    return uses_.behind(v) != Uses::kNever && uses_.up_to_peak(v) < peak_ && classes_.is_private(v) &&
           !classes_.is_output(v) && block >= 0 && lifetimes_.blocks[at(block)].bytes >= least_bytes_;
  }

  const Graph& graph_;
  const Lifetimes& lifetimes_;
  const int32_t peak_;
  const int64_t least_bytes_;
  MemoryClasses classes_;
  const Uses uses_;
  std::vector<Way> ways_;
  std::vector<bool> goes_;
  std::vector<int32_t> segment_end_;  // of each node: the last one between the same effects
};

// Nodes after the peak use copies of what goes.
Remap use_copies(Graph& graph, const Ways& ways, int32_t peak) {
  Rewriter rewriter(graph);
  NodeCopies copies(graph, rewriter,
                    [&](ValueId v) { return ways.is_at_hand(v) ? rewriter.now(v) : kNoValue; });
  std::vector<ValueId> operands;
  for (int32_t n = 0; n < std::ssize(graph.nodes()); ++n) {
    const Node& node = graph.nodes()[at(n)];
    operands.clear();
    for (ValueId v : graph.operands(node))
      operands.push_back(v != kNoValue && n > peak && ways.goes(v) ? copies.of(v, node) : rewriter.now(v));
    rewriter.keep(at(n), operands);
  }
  return rewriter.finish();
}

// False, with nothing done, if a round gains too little.
bool run_round(Graph& graph, const PassInput& input, Remap& remap) {
  const Lifetimes found = lifetimes_of(graph, input);
  const std::vector<int64_t> live = found.live_bytes();
  const auto most = std::ranges::max_element(live);
  const auto peak = static_cast<int32_t>(most - live.begin());
  if (found.blocks.empty() || peak == std::ssize(graph.nodes())) return false;  // behind the last node
  const Ways ways(graph, found, input.writes, peak);
  if (!ways.any()) return false;
  Graph made = graph.copy();
  Remap through = use_copies(made, ways, peak);
  if (Remap more; dce(made, input, more)) through.then(more);
  if (peak_of(made, input) > *most - *most / kLeastGain) return false;
  graph = std::move(made);
  remap.then(through);
  return true;
}

}  // namespace

bool recompute(Graph& graph, const PassInput& input, Remap& remap) {
  if (graph.nodes().empty()) return false;
  Graph made = graph.copy();
  Remap all = Remap::identity(graph);
  int rounds = 0;
  while (rounds < kMostRounds && run_round(made, input, all)) ++rounds;
  if (rounds == 0) return false;
  const int64_t before = peak_of(graph, input);
  if (peak_of(made, input) > before - before / kWorthIt) return false;
  graph = std::move(made);
  remap = std::move(all);
  return true;
}

}  // namespace retrograd::ir
