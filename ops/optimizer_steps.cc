// See ops/optimizer_steps.h.
#include "ops/optimizer_steps.h"

#include "engine/runner.h"

namespace retrograd::ops {
namespace {

// Operands that become results: all but the gradient.
int updated(std::span<TensorImpl* const> operands) {
  int n = 0;
  for (size_t i = 0; i + 1 < operands.size(); ++i) n += operands[i] != nullptr;
  return n;
}

}  // namespace

void UpdateOp::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& p = *call.operands[0];
  if (p.dtype() != kFloat32 && p.dtype() != kFloat64)
    fail_call(call, Category::dtype_mismatch, "parameters are float32 or float64");
  for (const TensorImpl* x : call.operands)
    if (x && !(x->type() == p.type()))
      fail_call(call, Category::shape_mismatch, "parameter, state and gradient have different types");
  if (call.outputs != updated(call.operands))
    fail_call(call, Category::bad_argument, "it gives a result for each operand but the gradient");
  for (int i = 0; i < call.outputs; ++i) outputs[i]->set_type(p.dtype(), p.device(), p.shape());
}

void run_update(const OpInfo& op, std::span<TensorImpl* const> operands, void* attrs, SourceLocation where) {
  TensorImpl* targets[kMaxOutputs];
  int n = 0;
  for (size_t i = 0; i + 1 < operands.size(); ++i)
    if (operands[i]) targets[n++] = operands[i];
  const Call call{&op, operands, attrs, effective_location(where), n};
  Emitter& emitter = Emitter::current();
  if (emitter.values() != Emitter::Values::computed) {
    Tensor results[kMaxOutputs];
    emitter.emit(call, results);
    for (int i = 0; i < n; ++i) emitter.write(*targets[i], results[i], where);
    return;
  }
  Executor& executor = cpu_executor();
  for (int i = 0; i < n; ++i) targets[i]->storage()->will_be_written();
  executor.launch(executor.find(&op), call, targets);
  for (int i = 0; i < n; ++i) targets[i]->storage()->bump_version(call.where);
}

}  // namespace retrograd::ops
