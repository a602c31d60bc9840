// See ops/optimizer_steps.h.
#include "ops/optimizer_steps.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "engine/recording.h"
#include "engine/runner.h"

namespace retrograd::inline v0::ops {
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
  if (!may_be_updated(p.dtype()))
    fail_call(call, Category::dtype_mismatch, "parameters are float32, float64, bfloat16 or float16");
  for (const TensorImpl* x : call.operands)
    if (x && !(x->type() == p.type()))
      fail_call(call, Category::shape_mismatch, "parameter, state and gradient have different types");
  if (call.outputs != std::ranges::count_if(call.operands.first(call.operands.size() - 1), std::identity()))
    fail_call(call, Category::bad_argument, "it gives a result for each operand but the gradient");
  for (int i = 0; i < call.outputs; ++i) outputs[i]->set_type(p.dtype(), p.device(), p.shape());
}

AdamWNumbers numbers_of(const AdamWStep::Attrs& a) {
  const double lr = a.lr.to_double(), beta1 = a.beta1.to_double(), beta2 = a.beta2.to_double(),
               t = a.step.to_double();
  const double correction1 = 1 - std::pow(beta1, t), correction2 = 1 - std::pow(beta2, t);
  return {a.maximize ? -1.0 : 1.0, 1 - lr * a.weight_decay.to_double(), 1 - beta1,        beta2, 1 - beta2,
          lr / correction1,        1 / std::sqrt(correction2),          a.eps.to_double()};
}

SGDNumbers numbers_of(const SGDStep::Attrs& a) {
  return {a.maximize ? -1.0 : 1.0, a.weight_decay.to_double(), a.lr.to_double(),      a.momentum.to_double(),
          a.keep.to_double(),      a.fresh.to_double(),        a.nesterov ? 1.0 : 0.0};
}

UpdateBatch::UpdateBatch(const OpInfo& op, SourceLocation where)
    : op_(op),
      where_(effective_location(where)),
      is_recorded_(Emitter::current().values() != Emitter::Values::computed) {}

void UpdateBatch::add(std::span<const Tensor> operands, int64_t* steps) {
  operands_.insert(operands_.end(), operands.begin(), operands.end());
  steps_.push_back(steps);
}

bool UpdateBatch::may_join(size_t a, size_t b) const {
  const auto left = operands(a, a + 1), right = operands(b, b + 1);
  return !is_recorded_ && left[0].dtype() == right[0].dtype() && left[0].device() == right[0].device() &&
         std::ranges::equal(left, right, {}, &Tensor::defined, &Tensor::defined);
}

// No step reads or writes memory that another one writes, and none writes the same memory twice.
bool UpdateBatch::is_independent(std::span<const Tensor> operands) const {
  std::vector<const Storage*> written, read;
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].defined())
      (i % arity_ == arity_ - 1 ? read : written).push_back(operands[i].impl().storage().get());
  std::ranges::sort(written);
  return std::ranges::adjacent_find(written) == written.end() &&
         std::ranges::none_of(read, [&](const Storage* s) { return std::ranges::binary_search(written, s); });
}

// A node whose results are written to its operands.
void UpdateBatch::record(std::span<const Tensor> operands, void* attrs) const {
  Emitter& emitter = Emitter::current();
  const std::vector<TensorImpl*> cells = cells_of(operands), targets = updated(cells, arity_);
  Tensor results[kMaxOutputs];
  emitter.emit({&op_, cells, attrs, where_, static_cast<int>(targets.size())}, results);
  for (size_t i = 0; i < targets.size(); ++i) recorded_function()->write(*targets[i], results[i], where_);
}

void UpdateBatch::launch(size_t begin, size_t end, void* attrs) const {
  const std::vector<TensorImpl*> cells = cells_of(operands(begin, end)), targets = updated(cells, arity_);
  const Call call{&op_, cells, attrs, where_, static_cast<int>(targets.size())};
  Executor& executor = executor_of(targets[0]->device());
  for (TensorImpl* t : targets) t->storage()->will_be_written();
  executor.launch(executor.find(&op_), call, targets.data());
  for (TensorImpl* t : targets) t->storage()->bump_version(call.where);
  for (size_t i = begin; i < end; ++i)
    if (steps_[i]) ++*steps_[i];
}

void UpdateBatch::run(size_t begin, size_t end, void* attrs) const {
  size_t done = begin;
  try {
    if (is_recorded_) return record(operands(begin, end), attrs);
    const size_t together = is_independent(operands(begin, end)) ? end - begin : 1;
    for (; done < end; done += together) launch(done, done + together, attrs);
  } catch (Exception& e) {
    if (done > 0)
      e.add_context(fmt::format("when {} of {} parameters had been updated", done, steps_.size()));
    throw;
  }
}

}  // namespace retrograd::ops
