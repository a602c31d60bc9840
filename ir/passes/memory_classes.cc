// See ir/passes/memory_classes.h.
#include "ir/passes/memory_classes.h"

#include <numeric>

namespace retrograd::inline v0::ir {

MemoryClasses::MemoryClasses(const Graph& graph)
    : parent_(static_cast<size_t>(graph.value_count())), flags_(parent_.size()) {
  std::iota(parent_.begin(), parent_.end(), 0);
  segments_.reserve(graph.nodes().size());
  const auto open = [&](ValueId v) { flags_[root(v)].open = true; };
  for (const Input& input : graph.inputs())
    if (input.kind == Input::Kind::tensor) open(input.value);
  int32_t segment = 0;
  for (const Node& node : graph.nodes()) {
    segments_.push_back(segment);
    const bool pure = node.op->is(Trait::pure);
    for (int i = 0; i < node.results && !pure; ++i) open(node.first_result + i);
    for (ValueId v : graph.operands(node)) {
      if (v == kNoValue) continue;
      if (!pure) open(v);
      for (int i = 0; i < node.results && pure && !makes_memory(*node.op); ++i)
        merge(v, node.first_result + i);
    }
    segment += !pure;
  }
  for (ValueId v : graph.outputs())
    if (v != kNoValue) flags_[root(v)].output = true;
}

size_t MemoryClasses::root(ValueId v) {
  auto at = static_cast<size_t>(v);
  while (static_cast<size_t>(parent_[at]) != at) {
    parent_[at] = parent_[static_cast<size_t>(parent_[at])];
    at = static_cast<size_t>(parent_[at]);
  }
  return at;
}

void MemoryClasses::merge(ValueId a, ValueId b) {
  const size_t to = root(a), from = root(b);
  if (to == from) return;
  parent_[from] = static_cast<ValueId>(to);
  flags_[to].open |= flags_[from].open;
  flags_[to].output |= flags_[from].output;
}

}  // namespace retrograd::ir
