// See ir/passes/recompute_saved.h.
#include "ir/passes/recompute_saved.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "engine/each_field.h"
#include "ir/passes/memory_classes.h"
#include "ir/rewriter.h"

namespace retrograd::inline v0::ir {
namespace {

bool has_symbols(const Node& node) {
  bool found = false;
  if (node.attrs)
    for_each_field(*node.op, node.attrs,
                   Fields{[&](auto, Dim& d) { found |= d.is_symbolic(); },
                          [&](auto, Scalar& s) { found |= s.is_symbolic(); },
                          [&](auto, Shape& shape) {
                            for (Dim d : shape) found |= d.is_symbolic();
                          }});
  return found;
}

// The forward's values in a backward: inputs, and values that it recomputes, each at its first use.
class Anew {
 public:
  Anew(const Graph& forward, Rewriter& rewriter)
      : forward_(forward), producer_(producers_of(forward)), rewriter_(rewriter) {}

  /// `input` of the backward is `value` of the forward. It is recomputed if `goes`, else it comes from outside.
  void add(ValueId input, ValueId value, bool goes) {
    if (goes)
      missing_[input] = value;
    else
      made_[value] = rewriter_.now(input);
  }
  /// The new value for an old one, for a node. An input that is recomputed stays in the graph: it is not replaced.
  ValueId now(ValueId v, const Node& user) {
    const auto it = missing_.find(v);
    if (it == missing_.end()) return rewriter_.now(v);
    if (!made_.contains(it->second)) make(it->second, user);
    return made_.at(it->second);
  }

 private:
  void make(ValueId value, const Node& user) {
    for (int32_t number : nodes_to(value)) {
      const Node& node = forward_.nodes()[static_cast<size_t>(number)];
      std::vector<ValueId> operands;
      for (ValueId v : forward_.operands(node)) operands.push_back(v == kNoValue ? v : made_.at(v));
      const TensorType type = forward_.type(node.first_result);
      made_[node.first_result] =
          rewriter_.append(*node.op, operands, node.attrs, {&type, 1}, user).first_result;
    }
  }
  // The nodes that compute a value from what is available, in order of the forward.
  std::vector<int32_t> nodes_to(ValueId value) const {
    std::vector<int32_t> nodes;
    std::unordered_set<int32_t> seen;
    std::vector<ValueId> todo{value};
    while (!todo.empty()) {
      const ValueId v = todo.back();
      todo.pop_back();
      if (v == kNoValue || made_.contains(v)) continue;
      const int32_t number = producer_[static_cast<size_t>(v)];
      if (!seen.insert(number).second) continue;
      nodes.push_back(number);
      const auto operands = forward_.operands(forward_.nodes()[static_cast<size_t>(number)]);
      todo.insert(todo.end(), operands.begin(), operands.end());
    }
    std::ranges::sort(nodes);
    return nodes;
  }

  const Graph& forward_;
  const std::vector<int32_t> producer_;
  Rewriter& rewriter_;
  std::unordered_map<ValueId, ValueId> made_;     // maps a value of the forward to the value here
  std::unordered_map<ValueId, ValueId> missing_;  // maps a recomputed input to the value of the forward
};

}  // namespace

bool is_cheap(const Node& node) {
  const OpInfo& op = *node.op;
  return op.is(Trait::pure) && node.results == 1 && !op.is(Trait::random) && !op.is(Trait::checks) &&
         !op.run_on_host && (op.is(Trait::elementwise) || op.is(Trait::view) || node.operands == 0);
}

std::vector<int32_t> producers_of(const Graph& graph) {
  std::vector<int32_t> all(static_cast<size_t>(graph.value_count()), -1);
  for (size_t n = 0; n < graph.nodes().size(); ++n)
    for (int r = 0; r < graph.nodes()[n].results; ++r)
      all[static_cast<size_t>(graph.nodes()[n].first_result + r)] = static_cast<int32_t>(n);
  return all;
}

// Values in order of the graph: `nodes` is the number of nodes that compute one from saved values, `sources` are those
// saved values. A value that needs too many nodes, or cannot be recomputed, must be saved itself.
Recompute::Recompute(const Graph& forward, std::vector<ValueId> saved,
                     const std::function<bool(size_t)>& may_go)
    : saved_(std::move(saved)), sources_(saved_.size()) {
  struct Way {
    bool known = false;
    int nodes = 0;
    std::vector<int32_t> sources = {};
  };
  std::vector<Way> ways(static_cast<size_t>(forward.value_count()));
  std::vector<int32_t> number(ways.size(), -1);
  for (size_t i = 0; i < saved_.size(); ++i) number[static_cast<size_t>(saved_[i])] = static_cast<int32_t>(i);
  const auto keep = [&](ValueId v) {
    if (const int32_t i = number[static_cast<size_t>(v)]; i >= 0)
      ways[static_cast<size_t>(v)] = {true, 0, {i}};
  };
  for (const Input& input : forward.inputs())
    if (input.kind == Input::Kind::tensor) keep(input.value);
  for (const Node& node : forward.nodes()) {
    Way way{is_cheap(node) && !has_symbols(node), 1};
    for (ValueId v : forward.operands(node)) {
      if (v == kNoValue || !way.known) continue;
      const Way& operand = ways[static_cast<size_t>(v)];
      way.known = operand.known;
      way.nodes += operand.nodes;
      way.sources.insert(way.sources.end(), operand.sources.begin(), operand.sources.end());
    }
    std::ranges::sort(way.sources);
    way.sources.erase(std::ranges::unique(way.sources).begin(), way.sources.end());
    way.known = way.known && way.nodes <= kMostNodes && way.sources.size() <= kMostSources;
    for (int r = 0; r < node.results; ++r) {
      const ValueId v = node.first_result + r;
      const int32_t i = number[static_cast<size_t>(v)];
      const bool goes = way.known && i >= 0 && !way.sources.empty() && may_go(static_cast<size_t>(i));
      if (goes) {
        sources_[static_cast<size_t>(i)] = way.sources;
        way.nodes = 0;  // it is recomputed once and then available
      }
      if (way.known && (goes || i < 0))
        ways[static_cast<size_t>(v)] = way;
      else
        keep(v);
    }
  }
}

bool Recompute::any() const {
  return std::ranges::any_of(sources_, [](const auto& list) { return !list.empty(); });
}

void Recompute::replace_outputs(Graph& forward, std::span<const int32_t> outputs) const {
  std::vector<ValueId> now = forward.outputs();
  for (size_t i = 0; i < sources_.size(); ++i)
    if (goes(i)) {
      const auto source = static_cast<size_t>(sources_[i].front());
      now[static_cast<size_t>(outputs[i])] = now[static_cast<size_t>(outputs[source])];
    }
  forward.set_outputs(std::move(now));
}

void Recompute::compute_anew(Graph& backward, const Graph& forward, std::span<const int32_t> saved) const {
  Rewriter rewriter(backward);
  Anew anew(forward, rewriter);
  for (size_t n = 0; n < saved.size(); ++n) {
    if (saved[n] < 0) continue;
    const auto i = static_cast<size_t>(saved[n]);
    anew.add(backward.inputs()[n].value, saved_[i], goes(i));
  }
  std::vector<ValueId> mapped;
  for (size_t n = 0; n < backward.nodes().size(); ++n) {
    mapped.clear();
    for (ValueId v : backward.operands(backward.nodes()[n]))
      mapped.push_back(anew.now(v, backward.nodes()[n]));
    rewriter.keep(n, mapped);
  }
  mapped.clear();
  for (ValueId v : backward.outputs())
    mapped.push_back(anew.now(v, backward.nodes().empty() ? Node{} : backward.nodes().back()));
  rewriter.finish();
  backward.set_outputs(mapped);
}

}  // namespace retrograd::ir
