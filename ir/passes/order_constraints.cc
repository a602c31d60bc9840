// See ir/passes/order_constraints.h.
#include "ir/passes/order_constraints.h"

#include <unordered_map>

namespace retrograd::inline v0::ir {
namespace {

// Adds (the node that gives the value written to an input, each node before it that reads the input).
void add_readers_of_written(const Graph& graph, std::span<const OutsideWrite> writes, MemoryClasses& classes,
                            Pairs& before) {
  std::unordered_map<ValueId, std::vector<ValueId>> inputs_of;  // of each written value
  std::unordered_map<ValueId, std::vector<int32_t>> readers;    // of each written input
  for (const OutsideWrite& w : writes) {
    const ValueId input = graph.inputs()[static_cast<size_t>(w.input)].value;
    inputs_of[graph.outputs()[static_cast<size_t>(w.output)]].push_back(classes.representative(input));
    readers[classes.representative(input)];
  }
  for (size_t i = 0; i < graph.nodes().size() && !writes.empty(); ++i) {
    const Node& node = graph.nodes()[i];
    const auto number = static_cast<int32_t>(i);
    for (int r = 0; r < node.results; ++r)
      if (const auto it = inputs_of.find(node.first_result + r); it != inputs_of.end())
        for (ValueId input : it->second)
          for (int32_t reader : readers[input]) before.push_back({number, reader});
    for (ValueId v : graph.operands(node))
      if (v != kNoValue)
        if (const auto it = readers.find(classes.representative(v)); it != readers.end())
          it->second.push_back(number);
  }
}

}  // namespace

Pairs order_constraints(const Graph& graph, std::span<const OutsideWrite> writes) {
  Pairs before;
  MemoryClasses classes(graph);
  add_readers_of_written(graph, writes, classes, before);
  std::vector<int32_t> giver(static_cast<size_t>(graph.value_count()), -1), staying;
  int32_t last_effect = -1;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const auto number = static_cast<int32_t>(i);
    const bool effect = !node.op->is(Trait::pure);
    bool stays = node.op->is(Trait::checks);
    for (ValueId v : graph.operands(node)) {
      if (v == kNoValue) continue;
      if (const int32_t g = giver[static_cast<size_t>(v)]; g >= 0) before.push_back({number, g});
      stays |= reads_memory(*node.op) && !classes.is_private(v);
    }
    for (int r = 0; r < node.results; ++r) giver[static_cast<size_t>(node.first_result + r)] = number;
    if ((effect || stays) && last_effect >= 0) before.push_back({number, last_effect});
    if (effect) {
      for (int32_t one : staying) before.push_back({number, one});
      staying.clear();
      last_effect = number;
    } else if (stays) {
      staying.push_back(number);
    }
  }
  return before;
}

}  // namespace retrograd::ir
