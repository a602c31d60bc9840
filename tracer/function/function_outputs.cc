// See tracer/function/function_outputs.h.
#include "tracer/function/function_outputs.h"

#include "ops/shape_ops.h"
#include "tracer/function/function_recorder.h"

namespace retrograd::inline v0 {

// Inputs, views, and results of hooks.
void FunctionOutputs::begin() {
  const ir::Graph& graph = of_.graph();
  borrowed_.assign(static_cast<size_t>(graph.value_count()), false);
  for (const ir::Input& input : graph.inputs())
    if (input.value != ir::kNoValue) borrowed_[static_cast<size_t>(input.value)] = true;
  for (const ir::Node& node : graph.nodes())
    if (node.op->is(Trait::view) || node.op->is(Trait::effect))
      for (int i = 0; i < node.results; ++i) borrowed_[static_cast<size_t>(node.first_result + i)] = true;
}

int32_t FunctionOutputs::add(ir::ValueId value, bool must_own) {
  if (value != ir::kNoValue && must_own) {
    const bool is_known = static_cast<size_t>(value) < borrowed_.size();
    if ((is_known && borrowed_[static_cast<size_t>(value)]) || known_.contains(value))
      value = clone(of_.memory().computed(of_.graph().type(value), value)).impl().value_id;
  }
  values_.push_back(value);
  known_.insert(value);
  return static_cast<int32_t>(values_.size()) - 1;
}

int32_t FunctionOutputs::add(Root& root) {
  if (root.output < 0) root.output = add(root.value, true);
  return root.output;
}

}  // namespace retrograd
