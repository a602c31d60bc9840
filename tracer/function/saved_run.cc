// See tracer/function/saved_run.h.
#include "tracer/function/saved_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "tracer/function/sized_function.h"

namespace retrograd::inline v0 {

SavedRun::~SavedRun() { drop_precomputed(); }

bool SavedRun::has_functions() const { return function->capture().tape()->has_functions(); }

void SavedRun::begin(bool released) {
  std::lock_guard lock(mutex_);
  goes_ = released;
}

SavedRun::Taken SavedRun::take(const FunctionBackward& backward, const Record& record,
                               std::span<TensorImpl* const> cotangents) {
  std::lock_guard lock(mutex_);
  check(backward, record);
  Taken taken;
  taken.can_run = can_run(backward);
  taken.gradients = take_precomputed(backward, cotangents);
  taken.values = take_values(backward);
  return taken;
}

void SavedRun::check(const FunctionBackward& backward, const Record& record) const {
  const BackwardReads& reads = backward.recorded.reads;
  for (const Record* r : reads.unpacked)
    if (released_.contains(r))
      fail(Category::backward_twice_freed, r->op->name,
           "its saved values were released by an earlier backward. Hint: retain_graph", record.where());
  for (const RecordedFunction::Input& input : backward.recorded.inputs) {
    if (input.saved < 0) continue;
    const auto i = static_cast<size_t>(input.saved);
    if (values[i].defined() && values[i].version() != versions[i])
      fail(Category::version_mismatch, "compiled",
           fmt::format("a saved value, {}, was written to: version {}, saved at {}", describe(values[i]),
                       values[i].version(), versions[i]),
           record.where());
  }
  for (int32_t input : reads.saved_outside) {
    const Tensor x(RefPtr<TensorImpl>(function->recorded_.inputs[static_cast<size_t>(input)].captured));
    if (const uint32_t then = input_versions[static_cast<size_t>(input)]; x.defined() && x.version() != then)
      fail(Category::version_mismatch, "compiled",
           fmt::format("a tensor from outside that was saved, {}, was written to: version {}, saved at {}. "
                       "Hint: clone it before writing to it",
                       describe(x), x.version(), then),
           record.where());
  }
  for (const RecordedFunction::Input& input : backward.inputs)
    if (input.forward_input >= 0) check_input(static_cast<size_t>(input.forward_input), record.where());
}

bool SavedRun::can_run(const FunctionBackward& backward) const {
  const auto is_there = [&](const RecordedFunction::Input& input) {
    const auto i = static_cast<size_t>(input.saved);
    return input.saved < 0 || (values[i].defined() && values[i].version() == versions[i]);
  };
  return backward.plan && std::ranges::all_of(backward.inputs, is_there);
}

void SavedRun::drop_precomputed() {
  if (precomputed.empty()) return;
  precomputed.clear();
  function->precomputed_->prediction().missed();
}

Tensors SavedRun::take_precomputed(const FunctionBackward& backward,
                                   std::span<TensorImpl* const> cotangents) {
  PrecomputedGradients* const source = function->precomputed_.get();
  if (!source || !source->serve(backward) || !goes_) return {};
  if (is_differentiated(cotangents) || !PrecomputedGradients::is_cotangent(cotangents)) {
    drop_precomputed();
    return {};
  }
  if (precomputed.empty())
    source->expect();
  else
    source->prediction().served();
  return std::exchange(precomputed, {});
}

// Drops the values that only released records use. Returns which they are.
std::vector<bool> SavedRun::drop_unused() {
  const std::vector<bool> unused = function->backwards_->unused(released_, values.size());
  for (size_t i = 0; i < values.size(); ++i)
    if (unused[i]) values[i].reset();
  return unused;
}

Tensors SavedRun::take_values(const FunctionBackward& backward) {
  last_ = &backward;
  taken_.clear();
  if (!std::exchange(goes_, false)) return values;
  std::lock_guard users_lock(function->backwards_->mutex());
  for (const Record* r : backward.recorded.reads.unpacked)
    if (released_.insert(r).second) taken_.push_back(r);
  Tensors taken = values;
  drop_unused();
  return taken;
}

void SavedRun::give_back(const FunctionBackward& backward, const Tensors& left) {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < left.size(); ++i)
    if (const int32_t s = backward.inputs[i].saved; s >= 0 && !values[static_cast<size_t>(s)].defined())
      values[static_cast<size_t>(s)] = left[i];
  std::lock_guard users_lock(function->backwards_->mutex());
  for (const Record* r : taken_)
    if (function->backwards_->has_all(*r, values)) released_.erase(r);
  taken_.clear();
}

void SavedRun::release() {
  std::lock_guard lock(mutex_);
  if (!last_) return;
  drop_precomputed();
  std::lock_guard users_lock(function->backwards_->mutex());
  const std::vector<const Record*>& unpacked = last_->recorded.reads.unpacked;
  released_.insert(unpacked.begin(), unpacked.end());
  last_ = nullptr;
  const std::vector<bool> unused = drop_unused();
  if (std::ranges::find(unused, false) == unused.end()) bindings.clear();
}

void SavedRun::check_inputs(SourceLocation where) const {
  for (size_t i = 0; i < bindings.size(); ++i) check_input(i, where);
}

void SavedRun::check_input(size_t number, SourceLocation where) const {
  if (const Tensor& x = bindings[number].tensor; x.defined() && x.version() != binding_versions[number])
    fail(
        Category::version_mismatch, "compiled",
        fmt::format("an input, {}, from which values are computed again, was written to before the backward. "
                    "Hint: clone it before writing to it",
                    describe(x)),
        where);
}

}  // namespace retrograd
