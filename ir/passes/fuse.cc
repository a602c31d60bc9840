// See ir/passes/fuse.h.
#include "ir/passes/fuse.h"

#include <algorithm>
#include <queue>

#include "engine/bookkeeping.h"
#include "engine/each_field.h"
#include "ir/passes/join_updates.h"
#include "ir/passes/memory_classes.h"
#include "ir/replay.h"

namespace retrograd::inline v0::ir {
namespace {

bool same_shape(const Shape& a, const Shape& b) {
  return a.rank() == b.rank() &&
         std::equal(a.begin(), a.end(), b.begin(), [](Dim x, Dim y) { return x.raw() == y.raw(); });
}

IntList reduced_dims(const Node& node) {
  IntList dims;
  for_each_field(*node.op, node.attrs, [&](std::string_view name, IntList& list) {
    if (name == "dim") dims = list;
  });
  return dims;
}

// The reduction of a node, or the common one of a group: all over the same dims of one dtype.
struct Reducing {
  FusedRole role = FusedRole::none;
  IntList dims = {};
  ScalarType dtype = ScalarType::Undefined;

  bool any() const { return role == FusedRole::reduce_rows || role == FusedRole::reduce_columns; }
  bool goes_with(const Reducing& o) const {
    return !any() || !o.any() || (role == o.role && dtype == o.dtype && std::ranges::equal(dims, o.dims));
  }
};

// A group that waits.
struct Waiting {
  int32_t id;  // no other group has it
  Shape shape;
  std::vector<uint32_t> nodes;
  std::vector<ValueId> inputs;
  Reducing reduces;

  bool reads(ValueId v) const { return std::ranges::find(inputs, v) != inputs.end(); }
};

class Grouper {
 public:
  Grouper(const Graph& graph, const FuseOptions& options)
      : graph_(graph),
        options_(options),
        waits_in_(static_cast<size_t>(graph.value_count()), -1),
        reduced_(waits_in_.size()),
        reader_(waits_in_.size(), -1),
        reduction_(waits_in_.size(), -1),
        at_(graph.nodes().size()) {
    result_.order.reserve(graph.nodes().size());
    result_.group.reserve(graph.nodes().size());
    find_roles();
    find_reductions();
  }

  Grouping run() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (at_[i].is_taken) continue;
      if (options_.stops && options_.stops(i)) let_all_go();
      if (at_[i].role != FusedRole::none) {
        join(static_cast<uint32_t>(i), at_[i].role);
        continue;
      }
      if (!lets_others_wait(node)) let_all_go();
      for (ValueId v : graph_.operands(node)) let_go(group_of(v));
      emit(static_cast<uint32_t>(i), joined_group(i));
    }
    let_all_go();
    return std::move(result_);
  }

 private:
  static bool lets_others_wait(const Node& node) {
    return node.op == &ops::unpack ||
           (node.op->is(Trait::pure) && (node.op->is(Trait::view) || node.op->run_on_host));
  }
  // The group of an update that is in a group already. All waiting groups are emitted before each of them, so they stay
  // neighbours.
  int32_t joined_group(size_t i) {
    const Node& node = graph_.nodes()[i];
    if (node.group < 0 || !node.op->is(Trait::updates)) return -1;
    const bool is_first = i == 0 || graph_.nodes()[i - 1].group != node.group;
    return is_first ? result_.groups++ : result_.groups - 1;
  }
  int32_t group_of(ValueId v) const { return v == kNoValue ? -1 : waits_in_[static_cast<size_t>(v)]; }
  Waiting& waiting(int32_t g) { return waiting_[static_cast<size_t>(g)]; }

  void emit(uint32_t node, int32_t group) {
    result_.order.push_back(node);
    result_.group.push_back(group);
  }

  // Sets the roles of all nodes, before the first is processed. A reduction of a value that may have another layout
  // than row-major has none: its kernel adds in an order that depends on the layout, a group does not.
  void find_roles() {
    std::vector<uint8_t> is_row_major(waits_in_.size());
    const auto lies_row_major = [&](ValueId v) {
      return v != kNoValue && is_row_major[static_cast<size_t>(v)];
    };
    for (size_t i = 0; i < at_.size(); ++i) {
      const Node& node = graph_.nodes()[i];
      const auto operands = graph_.operands(node);
      const bool first = !operands.empty() && lies_row_major(operands[0]);
      at_[i].role = fused_role(graph_, node, options_.executor);
      if (at_[i].role != FusedRole::elementwise && !first) at_[i].role = FusedRole::none;
      if (gives_row_major(*node.op, first))
        std::fill_n(is_row_major.begin() + node.first_result, node.results, uint8_t{1});
    }
  }

  // Sets the reductions of each value, before the first node is processed.
  void find_reductions() {
    int32_t stretch = 0;
    for (size_t i = at_.size(); i-- > 0;) {
      const Node& node = graph_.nodes()[i];
      at_[i].stretch = stretch;
      if (!node.op->is(Trait::pure) || (options_.stops && options_.stops(i))) ++stretch;
      if (at_[i].role == FusedRole::none || at_[i].role == FusedRole::elementwise) continue;
      int32_t& first = reduction_[static_cast<size_t>(graph_.operands(node)[0])];
      at_[i].next_reduction = std::exchange(first, static_cast<int32_t>(i));
    }
  }

  Reducing reducing(const Node& node, FusedRole role) const {
    if (role == FusedRole::elementwise) return {role};
    return {role, reduced_dims(node), graph_.type(graph_.operands(node)[0]).dtype};
  }

  // Adds later reductions of the group's values in the same stretch: they need nothing else.
  void take_reductions(int32_t g) {
    for (size_t k = 0; k < waiting(g).nodes.size(); ++k) {
      const uint32_t giver = waiting(g).nodes[k];
      const auto value = static_cast<size_t>(graph_.nodes()[giver].first_result);
      if (reduced_[value]) continue;
      for (int32_t n = reduction_[value]; n >= 0; n = at_[static_cast<size_t>(n)].next_reduction) {
        At& reduction = at_[static_cast<size_t>(n)];
        const Node& node = graph_.nodes()[static_cast<size_t>(n)];
        if (group_of(node.first_result) >= 0 || reduction.stretch != at_[giver].stretch) continue;
        const Reducing reduces = reducing(node, reduction.role);
        if (!waiting(g).reduces.goes_with(reduces) || !has_room(waiting(g), graph_.operands(node))) continue;
        reduction.is_taken = true;
        add(g, static_cast<uint32_t>(n), reduces);
      }
    }
  }

  void let_go(int32_t g) {
    if (g < 0) return;
    if (options_.looks_ahead) take_reductions(g);
    Waiting& w = waiting(g);
    std::ranges::sort(w.nodes);
    const int32_t number = w.nodes.size() > 1 ? result_.groups++ : -1;
    for (uint32_t n : w.nodes) {
      emit(n, number);
      waits_in_[static_cast<size_t>(graph_.nodes()[n].first_result)] = -1;
    }
    w.nodes.clear();
    free_.push(g);
  }
  void let_all_go() {
    for (size_t g = 0; g < waiting_.size(); ++g)
      if (!waiting_[g].nodes.empty()) let_go(static_cast<int32_t>(g));
    waiting_.clear();
    free_ = {};
  }

  // Merges those groups that give operands, have the node's space and have room; the node joins the result. The other
  // groups are emitted.
  void join(uint32_t n, FusedRole role) {
    const Node& node = graph_.nodes()[n];
    const auto operands = graph_.operands(node);
    const Reducing reduces = reducing(node, role);
    const Shape& space = graph_.type(role == FusedRole::elementwise ? node.first_result : operands[0]).shape;
    for (ValueId v : operands)
      if (v != kNoValue && reduced_[static_cast<size_t>(v)]) let_go(group_of(v));
    int32_t joined = -1;
    for (ValueId v : operands) {
      const int32_t g = group_of(v);
      if (g < 0 || g == joined) continue;
      const bool fits = same_shape(waiting(g).shape, space) && waiting(g).reduces.goes_with(reduces) &&
                        has_room(waiting(g), operands);
      if (fits && joined < 0)
        joined = g;
      else if (!fits || !merge(joined, g, operands))
        let_go(g);
    }
    if (joined < 0) joined = neighbour(operands, space, reduces);
    if (joined < 0) joined = new_group(space);
    add(joined, n, reduces);
  }

  void add(int32_t g, uint32_t n, const Reducing& reduces) {
    const Node& node = graph_.nodes()[n];
    Waiting& w = waiting(g);
    w.nodes.push_back(n);
    for (ValueId v : graph_.operands(node))
      if (v != kNoValue && group_of(v) != g) read(g, v);
    waits_in_[static_cast<size_t>(node.first_result)] = g;
    if (!reduces.any()) return;
    reduced_[static_cast<size_t>(node.first_result)] = true;
    w.reduces = reduces;
  }

  bool has_room(const Waiting& w, std::span<const ValueId> more) const {
    return w.nodes.size() < options_.most_nodes && w.inputs.size() + more.size() <= options_.most_inputs;
  }

  void read(int32_t g, ValueId v) {
    Waiting& w = waiting(g);
    if (w.reads(v)) return;
    w.inputs.push_back(v);
    int32_t& head = reader_[static_cast<size_t>(v)];
    readers_.push_back({g, w.id, head});
    head = static_cast<int32_t>(readers_.size()) - 1;
  }

  // A group that reads one of the operands in the whole space. For each value, the last kMostReaders groups are
  // checked.
  int32_t neighbour(std::span<const ValueId> operands, const Shape& space, const Reducing& reduces) {
    int32_t found = -1;
    for (ValueId v : operands) {
      if (v == kNoValue || !same_shape(graph_.type(v).shape, space)) continue;
      int32_t at = reader_[static_cast<size_t>(v)];
      for (int n = 0; at >= 0 && n < kMostReaders; ++n) {
        const auto [g, id, next] = readers_[static_cast<size_t>(at)];
        at = next;
        if (static_cast<size_t>(g) >= waiting_.size()) continue;
        const Waiting& w = waiting(g);
        if (w.id == id && !w.nodes.empty() && (found < 0 || g < found) && same_shape(w.shape, space) &&
            w.reduces.goes_with(reduces) && has_room(w, operands))
          found = g;
      }
    }
    return found;
  }

  int32_t new_group(const Shape& space) {
    auto g = static_cast<int32_t>(waiting_.size());
    if (free_.empty()) {
      waiting_.emplace_back();
    } else {
      g = free_.top();
      free_.pop();
    }
    waiting(g) = {next_id_++, space, {}, {}, {}};
    return g;
  }

  // Group b becomes part of a, if there is room for both and for a node with these operands.
  bool merge(int32_t a, int32_t b, std::span<const ValueId> more) {
    Waiting &into = waiting(a), &from = waiting(b);
    if (into.nodes.size() + from.nodes.size() >= options_.most_nodes ||
        into.inputs.size() + from.inputs.size() + more.size() > options_.most_inputs ||
        !into.reduces.goes_with(from.reduces))
      return false;
    for (uint32_t n : from.nodes) {
      into.nodes.push_back(n);
      waits_in_[static_cast<size_t>(graph_.nodes()[n].first_result)] = a;
    }
    for (ValueId v : from.inputs) read(a, v);
    if (from.reduces.any()) into.reduces = from.reduces;
    from.nodes.clear();
    free_.push(b);
    return true;
  }

  struct At {
    FusedRole role = FusedRole::none;
    bool is_taken = false;        // by a group, before its turn
    int32_t stretch = 0;          // grows towards the front, at each effect and each stop
    int32_t next_reduction = -1;  // of the same value
  };

  static constexpr int kMostReaders = 64;
  struct Reader {
    int32_t group, id, next;  // next: of the same value
  };

  const Graph& graph_;
  const FuseOptions& options_;
  std::vector<int32_t> waits_in_;  // of each value: the waiting group whose node gives it
  std::vector<uint8_t> reduced_;   // of each value: a reduction in a group gives it
  std::vector<Waiting> waiting_;   // without nodes: free
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> free_;
  int32_t next_id_ = 0;
  std::vector<int32_t> reader_;  // of each value: the last group that reads it, in readers_; -1: none
  std::vector<Reader> readers_;
  std::vector<int32_t> reduction_;  // of each value: the first node that reduces it; -1: none
  std::vector<At> at_;              // of each node
  Grouping result_;
};

}  // namespace

FusedRole fused_role(const Graph& graph, const Node& node, const Executor& executor) {
  constexpr size_t kMost = 4;
  const auto operands = graph.operands(node);
  if (!node.op->is(Trait::pure) || node.results != 1 || operands.size() > kMost) return FusedRole::none;
  TensorType types[kMost];
  for (size_t k = 0; k < operands.size(); ++k)
    if (operands[k] != kNoValue) types[k] = graph.type(operands[k]);
  return executor.fused_role(*node.op, node.attrs, {types, operands.size()}, graph.type(node.first_result));
}

std::unique_ptr<FusedKernel> group_kernel(Executor& executor, const FusedGroup& group) {
  return group.nodes[0].op->is(Trait::updates) ? joined_updates(executor, group) : executor.fuse(group);
}

Grouping find_groups(const Graph& graph, const FuseOptions& options) { return Grouper(graph, options).run(); }

Remap regroup(Graph& graph, const Grouping& grouping) {
  Rewriter rewriter(graph);
  for (uint32_t node : grouping.order) rewriter.keep(node);
  Remap remap = rewriter.finish();
  for (size_t n = 0; n < grouping.group.size(); ++n) graph.set_group(n, grouping.group[n]);
  return remap;
}

std::vector<int32_t> count_uses(const Graph& graph, std::span<const ValueId> kept) {
  std::vector<int32_t> uses(static_cast<size_t>(graph.value_count()));
  const auto use = [&](ValueId v) {
    if (v != kNoValue) ++uses[static_cast<size_t>(v)];
  };
  for (const Node& node : graph.nodes()) std::ranges::for_each(graph.operands(node), use);
  std::ranges::for_each(graph.outputs(), use);
  std::ranges::for_each(kept, use);
  return uses;
}

GroupDescription::GroupDescription(const Graph& graph, std::span<const uint32_t> nodes,
                                   std::span<const int32_t> uses, std::span<const Number> values) {
  size_t operands = 0;
  for (uint32_t n : nodes) operands += graph.nodes()[n].operands;
  operands_.reserve(operands);  // nodes_ refers to it
  std::vector<int32_t> used_within(nodes.size());
  const auto number = [&](ValueId v) {
    if (v == kNoValue) return FusedNode::kNone;
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (graph.nodes()[nodes[i]].first_result == v) {
        ++used_within[i];
        return ~static_cast<int32_t>(i);
      }
    const auto known = std::ranges::find(inputs_, v);
    const auto input = static_cast<int32_t>(known - inputs_.begin());
    if (known == inputs_.end()) {
      inputs_.push_back(v);
      types_.push_back(concrete_type(graph.type(v), values));
    }
    return input;
  };
  for (uint32_t n : nodes) {
    const Node& node = graph.nodes()[n];
    const size_t first = operands_.size();
    for (ValueId v : graph.operands(node)) operands_.push_back(number(v));
    nodes_.push_back({node.op,
                      {operands_.data() + first, node.operands},
                      node.attrs,
                      concrete_type(graph.type(node.first_result), values),
                      node.results});
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = graph.nodes()[nodes[i]];
    const ValueId result = node.first_result;
    if (!node.op->is(Trait::updates) && uses[static_cast<size_t>(result)] == used_within[i]) continue;
    outputs_.push_back(static_cast<int32_t>(i));
    for (int r = 0; r < node.results; ++r) output_values_.push_back(result + r);
  }
}

}  // namespace retrograd::ir
