// See tracer/function/early_gradients.h.
#include "tracer/function/early_gradients.h"

#include <algorithm>
#include <unordered_map>

namespace retrograd::inline v0 {

EarlyGradients::EarlyGradients(const FunctionBackward& backward, const Record& record,
                               std::span<const ir::Binding> bindings)
    : record_(record) {
  CurrentBackward* const current = CurrentBackward::innermost();
  delivery_ = current ? current->delivery() : nullptr;
  if (!delivery_) return;
  const std::vector<LeafDelivery::Place> places = delivery_->early_leaves(record);
  if (places.empty()) return;

  const ir::Graph& graph = backward.planned;
  ir::MemoryClasses classes(graph);
  // Of each class of values that may share memory: the node after the last one that has one of them, and outputs.
  std::vector<uint32_t> until(static_cast<size_t>(graph.value_count()));
  std::vector<int> outputs(until.size());
  const auto of = [&](auto& list, ir::ValueId v) -> auto& {
    return list[static_cast<size_t>(classes.representative(v))];
  };
  for (uint32_t n = 0; n < graph.nodes().size(); ++n) {
    const ir::Node& node = graph.nodes()[n];
    for (ir::ValueId v : graph.operands(node))
      if (v != ir::kNoValue) of(until, v) = n + 1;
    for (int r = 0; r < node.results; ++r) of(until, node.first_result + r) = n + 1;
  }
  for (ir::ValueId v : graph.outputs())
    if (v != ir::kNoValue) ++of(outputs, v);

  std::unordered_map<const Storage*, uint32_t> read_until;
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (!bindings[i].tensor.defined() || !bindings[i].tensor.impl().storage()) continue;
    const Storage* const memory = bindings[i].tensor.impl().storage().get();
    const uint32_t end = of(until, graph.inputs()[i].value);
    read_until[memory] = std::max(read_until[memory], end);
    if (backward.inputs[i].argument < 0) inputs_.push_back({memory, memory->version(), end});
  }
  for (const LeafDelivery::Place& place : places) {
    const ir::ValueId v = graph.outputs()[static_cast<size_t>(place.operand)];
    if (v == ir::kNoValue || !classes.is_private(v) || of(outputs, v) > 1) continue;
    const auto read = read_until.find(place.leaf->storage().get());
    deliveries_.push_back({std::max(of(until, v), read == read_until.end() ? 0 : read->second), place});
  }
  std::ranges::stable_sort(deliveries_, {}, &Delivery::node);
}

void EarlyGradients::run(PlanRun& run) const {
  if (!run.may_pause()) return;
  for (const Delivery& d : deliveries_) {
    run.go_before(d.node);
    delivery_->deliver(d.place, run.take_output(static_cast<size_t>(d.place.operand)));
    check_inputs(d.node);
  }
}

void EarlyGradients::check_inputs(uint32_t node) const {
  for (const Input& input : inputs_)
    if (input.until > node && input.memory->version() != input.version)
      fail(Category::version_mismatch, record_.op->name,
           "a hook has modified a tensor that is needed for a gradient still to come. Hint: clone it before "
           "writing to it, or write after the backward",
           record_.where());
}

}  // namespace retrograd
