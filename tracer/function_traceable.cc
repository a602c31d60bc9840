// Traceable functions of the user's (engine/function.h) in a recorded function: see tracer/function_recorder.h.
//
// Forward has run on recorded values, so what it did is part of the graph, and the record of the recorded tape has the function's own backward.
// A replay that is to be differentiated once more must have such a record, too, and finds here where. (A node of an opaque function makes it
// itself: tracer/function_opaque.cc.)
#include <algorithm>

#include "ops/shape_ops.h"
#include "ops/views.h"
#include "tracer/function_recorder.h"

namespace retrograd {

// A function that has run: its results. One that it hands on gets a value of its own.
void FunctionRecorder::emit_traceable(const Call& call, Tensor* results) {
  call.op->run_on_host(call, results);
  if (forward_) return;
  std::vector<ir::ValueId> operands, values;
  for (TensorImpl* x : call.operands)
    operands.push_back(x ? value_of(Tensor(RefPtr<TensorImpl>(x))) : ir::kNoValue);
  for (int i = 0; i < call.outputs; ++i) {
    values.push_back(value_of(results[i]));
    if (!results[i].defined()) continue;
    made(results[i]);
    if (std::ranges::count(operands, values.back()) == 0) continue;
    TensorImpl* handed_on = results[i].get();
    const TensorType type = handed_on->type();
    values.back() =
        append({&ops::info<ops::Alias>, {&handed_on, 1}, nullptr, call.where, 1}, {&type, 1}).first_result;
    handed_on->value_id = values.back();
  }
  const bool is_users = call.op->host_backward == FunctionCall::run_backward;
  if (!is_users || !call.attrs_as<FunctionCall::Attrs>().traceable || !GradMode::is_enabled()) return;
  traceable_calls_.push_back({graph_.nodes().size(), call.op, call.attrs_as<FunctionCall::Attrs>(),
                              call.where, std::move(operands), std::move(values),
                              Tensors(results, results + call.outputs)});
}

// Which results have a gradient, and the context, are known when the record has been made.
void FunctionRecorder::finish_traceable(RecordedFunction& out) {
  for (RecordedFunction::TraceableCall& call : traceable_calls_) {
    for (const Tensor& t : std::exchange(call.made, {})) {
      const Record* const record = t.defined() ? t.impl().grad_fn.get() : nullptr;
      call.is_differentiable.push_back(record);
      if (record && record->op == call.op) call.context = record->hooks->owned;
    }
    if (call.context) out.traceable_calls.push_back(std::move(call));
  }
  traceable_calls_.clear();
}

}  // namespace retrograd
