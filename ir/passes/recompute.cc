// See ir/passes/recompute.h.
#include "ir/passes/recompute.h"

#include <algorithm>
#include <unordered_map>

#include "ir/each_field.h"
#include "ir/passes/memory_classes.h"
#include "ir/rewriter.h"

namespace retrograd::ir {
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

bool is_cheap(const Node& node) {
  const OpInfo& op = *node.op;
  return op.is(Trait::pure) && node.results == 1 && !op.is(Trait::random) && !op.is(Trait::checks) &&
         !op.run_on_host && (op.is(Trait::elementwise) || op.is(Trait::view) || node.operands == 0) &&
         !has_symbols(node);
}

std::vector<int32_t> producers(const Graph& graph) {
  std::vector<int32_t> all(static_cast<size_t>(graph.value_count()), -1);
  for (size_t n = 0; n < graph.nodes().size(); ++n)
    for (int r = 0; r < graph.nodes()[n].results; ++r)
      all[static_cast<size_t>(graph.nodes()[n].first_result + r)] = static_cast<int32_t>(n);
  return all;
}

}  // namespace

// Values in order of the graph: `nodes` lead to one from what is saved, `sources` are what is saved there. A value from
// which too many lead, or none, is known as itself alone.
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
    Way way{is_cheap(node), 1};
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
        way.nodes = 0;  // it is computed for its own sake
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
  const std::vector<int32_t> producer = producers(forward);
  Rewriter rewriter(backward);
  std::unordered_map<ValueId, ValueId> made;     // of a value of the forward, the value here
  std::unordered_map<ValueId, ValueId> missing;  // of an input that goes, the value of the forward
  for (size_t n = 0; n < saved.size(); ++n) {
    if (saved[n] < 0) continue;
    const auto i = static_cast<size_t>(saved[n]);
    const ValueId input = backward.inputs()[n].value;
    if (goes(i))
      missing[input] = saved_[i];
    else
      made[saved_[i]] = rewriter.now(input);
  }
  std::vector<ValueId> todo;
  std::vector<int32_t> nodes;
  const auto make = [&](ValueId input, const Node& like) {
    const auto it = missing.find(input);
    if (it == missing.end() || made.contains(it->second)) return;
    nodes.clear();
    todo.assign(1, it->second);
    while (!todo.empty()) {
      const ValueId v = todo.back();
      todo.pop_back();
      if (v == kNoValue || made.contains(v)) continue;
      const int32_t number = producer[static_cast<size_t>(v)];
      nodes.push_back(number);
      const auto operands = forward.operands(forward.nodes()[static_cast<size_t>(number)]);
      todo.insert(todo.end(), operands.begin(), operands.end());
    }
    std::ranges::sort(nodes);
    nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
    for (int32_t number : nodes) {
      const Node& node = forward.nodes()[static_cast<size_t>(number)];
      std::vector<ValueId> operands;
      for (ValueId v : forward.operands(node)) operands.push_back(v == kNoValue ? v : made.at(v));
      const TensorType type = forward.type(node.first_result);
      made[node.first_result] =
          rewriter.append(*node.op, operands, node.attrs, {&type, 1}, like).first_result;
    }
  };
  // The value in place of an old one. An input itself stays: it is not replaced.
  const auto now = [&](ValueId v, const Node& like) {
    make(v, like);
    const auto it = missing.find(v);
    return it == missing.end() ? rewriter.now(v) : made.at(it->second);
  };
  std::vector<ValueId> mapped;
  for (size_t n = 0; n < backward.nodes().size(); ++n) {
    mapped.clear();
    for (ValueId v : backward.operands(backward.nodes()[n])) mapped.push_back(now(v, backward.nodes()[n]));
    rewriter.keep(n, mapped);
  }
  mapped.clear();
  for (ValueId v : backward.outputs())
    mapped.push_back(now(v, backward.nodes().empty() ? Node{} : backward.nodes().back()));
  rewriter.finish();
  backward.set_outputs(mapped);
}

}  // namespace retrograd::ir
