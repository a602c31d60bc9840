// See ir/passes/recompute_saved.h.
#include "ir/passes/recompute_saved.h"

#include <algorithm>
#include <unordered_map>

#include "engine/each_field.h"
#include "ir/passes/memory_classes.h"
#include "ir/passes/node_copies.h"
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
      : rewriter_(rewriter), copies_(forward, rewriter, [this](ValueId v) {
          const auto it = given_.find(v);
          return it == given_.end() ? kNoValue : it->second;
        }) {}
  Anew(const Anew&) = delete;

  /// `input` of the backward is `value` of the forward. It is recomputed if `goes`, else it comes from outside.
  void add(ValueId input, ValueId value, bool goes) {
    if (goes)
      missing_[input] = value;
    else
      given_[value] = rewriter_.now(input);
  }
  /// The new value for an old one, for a node. An input that is recomputed stays in the graph: it is not replaced.
  ValueId now(ValueId v, const Node& user) {
    const auto it = missing_.find(v);
    return it == missing_.end() ? rewriter_.now(v) : copies_.of(it->second, user);
  }

 private:
  Rewriter& rewriter_;
  std::unordered_map<ValueId, ValueId> given_;    // maps a value of the forward to the input that it is
  std::unordered_map<ValueId, ValueId> missing_;  // maps a recomputed input to the value of the forward
  NodeCopies copies_;
};

}  // namespace

bool is_cheap(const Node& node) {
  const OpInfo& op = *node.op;
  return op.is(Trait::pure) && node.results == 1 && !op.is(Trait::random) && !op.is(Trait::checks) &&
         !op.run_on_host && (op.is(Trait::elementwise) || op.is(Trait::view) || node.operands == 0);
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
