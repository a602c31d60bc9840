// See ops/optimizer_steps.h.
#include "ops/optimizer_steps.h"

#include <algorithm>
#include <utility>

#include "engine/runner.h"

namespace retrograd::ops {
namespace {

std::vector<TensorImpl*> cells_of(std::span<const Tensor> tensors) {
  std::vector<TensorImpl*> cells;
  cells.reserve(tensors.size());
  for (const Tensor& t : tensors) cells.push_back(t.get());
  return cells;
}

// Operands that become results: all but the gradient.
std::vector<TensorImpl*> updated(std::span<TensorImpl* const> operands, size_t arity) {
  std::vector<TensorImpl*> targets;
  targets.reserve(operands.size());
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i] && i % arity != arity - 1) targets.push_back(operands[i]);
  return targets;
}

}  // namespace

void UpdateOp::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& p = *call.operands[0];
  if (p.dtype() != kFloat32 && p.dtype() != kFloat64)
    fail_call(call, Category::dtype_mismatch, "parameters are float32 or float64");
  for (const TensorImpl* x : call.operands)
    if (x && !(x->type() == p.type()))
      fail_call(call, Category::shape_mismatch, "parameter, state and gradient have different types");
  if (call.outputs != std::ranges::count_if(call.operands.first(call.operands.size() - 1), std::identity()))
    fail_call(call, Category::bad_argument, "it gives a result for each operand but the gradient");
  for (int i = 0; i < call.outputs; ++i) outputs[i]->set_type(p.dtype(), p.device(), p.shape());
}

bool UpdateBatch::record(std::span<const Tensor> operands, void* attrs) const {
  Emitter& emitter = Emitter::current();
  if (emitter.values() == Emitter::Values::computed) return false;
  const std::vector<TensorImpl*> cells = cells_of(operands), targets = updated(cells, cells.size());
  Tensor results[kMaxOutputs];
  emitter.emit({&op_, cells, attrs, where_, static_cast<int>(targets.size())}, results);
  for (size_t i = 0; i < targets.size(); ++i) emitter.write(*targets[i], results[i], where_);
  return true;
}

bool UpdateBatch::fits(std::span<const Tensor> operands) const {
  if (operands_.empty()) return true;
  if (operands[0].dtype() != operands_[0].dtype() || !(operands[0].device() == operands_[0].device()))
    return false;
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].defined() != operands_[i].defined()) return false;
  return true;
}

void UpdateBatch::append(std::span<const Tensor> operands) {
  operands_.insert(operands_.end(), operands.begin(), operands.end());
}

// No step reads or writes memory that another one writes, and none writes the same twice.
bool UpdateBatch::is_independent() const {
  const auto arity = static_cast<size_t>(op_.arity);
  std::vector<const Storage*> written, read;
  for (size_t i = 0; i < operands_.size(); ++i)
    if (operands_[i].defined())
      (i % arity == arity - 1 ? read : written).push_back(operands_[i].impl().storage().get());
  std::ranges::sort(written);
  return std::ranges::adjacent_find(written) == written.end() &&
         std::ranges::none_of(read, [&](const Storage* s) { return std::ranges::binary_search(written, s); });
}

void UpdateBatch::launch(std::span<const Tensor> operands, void* attrs) const {
  const std::vector<TensorImpl*> cells = cells_of(operands),
                                 targets = updated(cells, static_cast<size_t>(op_.arity));
  const Call call{&op_, cells, attrs, where_, static_cast<int>(targets.size())};
  Executor& executor = executor_of(targets[0]->device());
  for (TensorImpl* t : targets) t->storage()->will_be_written();
  executor.launch(executor.find(&op_), call, targets.data());
  for (TensorImpl* t : targets) t->storage()->bump_version(call.where);
}

void UpdateBatch::run(void* attrs) {
  if (operands_.empty()) return;
  const bool together = is_independent();
  const Tensors operands = std::exchange(operands_, {});
  const size_t step = together ? operands.size() : static_cast<size_t>(op_.arity);
  for (size_t at = 0; at < operands.size(); at += step) launch({operands.data() + at, step}, attrs);
}

}  // namespace retrograd::ops
