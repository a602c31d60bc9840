// See tracer/function/results.h.
#include "tracer/function/results.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/inplace.h"
#include "tracer/function/function_recorder.h"

namespace retrograd::inline v0 {

Tensor tensor_at(const Location& location, const std::vector<ir::Binding>& bindings, const Tensors& outputs) {
  return location.in((location.output >= 0 ? outputs[static_cast<size_t>(location.output)]
                                           : bindings[static_cast<size_t>(location.input)].tensor)
                         .impl());
}

Tensor grad_at(const Location& location, const Tensors& outputs) {
  const Tensor& memory = outputs[static_cast<size_t>(location.output)];
  return location.is(memory.impl(), memory.impl()) ? memory : location.in(memory.impl());
}

// ---- recording ----------------------------------------------------------------------------------------------------

bool FunctionResults::is_made_leaf(const Tensor& made) const {
  const TensorImpl& cell = made.impl();
  if (!cell.requires_grad || cell.grad_fn) return false;
  if (cell.meta && cell.meta->has_hooks())
    fail(
        Category::unsupported, "compile",
        fmt::format("a recorded function registers hooks on {}, a leaf that it makes. Hint: register them on "
                    "the result",
                    describe(made)),
        where_);
  return true;
}

void FunctionResults::bind(FunctionRecorder& recorder, const Tensors& given, Tensors results,
                           bool has_history, bool gradients) {
  bind_given(recorder, given, results);
  results.clear();
  for (ResultBinding& r : all_) {
    r.is_leaf = r.recorded.defined() && is_made_leaf(r.recorded);
    r.is_inference = r.recorded.defined() && r.recorded.is_inference();
  }
  if (!has_history) return;
  Numbers known = numbers();
  for (size_t i = 0; i < given_; ++i)
    if (all_[i].recorded.defined() && all_[i].recorded.impl().base) find_base(recorder, i, known);
  find_written(recorder);
  known = numbers();
  for (ResultBinding& r : all_)
    if (r.recorded.defined()) find_history(r, known, gradients);
}

void FunctionResults::bind_given(FunctionRecorder& recorder, const Tensors& given, const Tensors& results) {
  given_ = results.size();
  std::unordered_map<const TensorImpl*, int> arguments, before;  // the first index of each
  for (size_t i = 0; i < given.size(); ++i) arguments.try_emplace(given[i].get(), static_cast<int>(i));
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& result = results[i];
    ResultBinding r;
    const auto argument = arguments.find(result.get());
    const auto [same, is_first] = before.try_emplace(result.get(), static_cast<int>(i));
    if (result.defined() && !result.requires_grad()) r.grad_of = recorder.grads().leaf_with_grad(result);
    if (result.defined() && argument != arguments.end())
      r.argument = argument->second;
    else if (r.grad_of)
      r.recorded = result.impl().graph ? result : Tensor();
    else if (result.defined() && !result.impl().graph)
      r.outside = recorder.hold(result.impl());
    else if (result.defined() && !is_first)
      r.same_as = same->second;
    else
      r.recorded = result;
    all_.push_back(std::move(r));
  }
}

void FunctionResults::find_history(ResultBinding& r, const Numbers& numbers, bool gradients) {
  const TensorImpl& cell = r.recorded.impl();
  r.is_outdated = cell.base && cell.made_at_version() != cell.storage()->version();
  if (!r.is_outdated || !cell.is_fixed_view())
    gradient_edge(r.recorded.impl());  // a view that is out of date is made again
  r.follows_base = r.base_argument >= 0 && is_view_of_written(cell, numbers);
  r.is_differentiable = gradients && cell.requires_grad && cell.grad_fn && !r.follows_base;
  r.is_leaf = is_made_leaf(r.recorded);  // again: a re-made view has a history now
  r.is_multi_output_view = cell.is_multi_output_view;
  r.is_no_grad_view = cell.is_no_grad_view;
  r.is_function_view = cell.is_function_view;
}

FunctionResults::Numbers FunctionResults::numbers() const {
  Numbers numbers;
  for (size_t i = 0; i < all_.size(); ++i)
    if (all_[i].recorded.defined()) numbers.try_emplace(all_[i].recorded.get(), i);
  return numbers;
}

// Whether a result shows the new value of an argument, or of its base, and nothing observes the gradient in between:
// then the gradient goes to the new value.
bool FunctionResults::is_view_of_written(const TensorImpl& view, const Numbers& numbers) const {
  const auto written = numbers.find(view.base.get());
  if (written == numbers.end() || all_[written->second].rewrites < 0) return false;
  const Record* record = view.grad_fn.get();
  while (record && record != view.base->grad_fn.get()) {
    if (!record->op->is(Trait::view) || record->operands != 1 || record->hooks) return false;
    record = record->edge(0).record();
  }
  return record;
}

// The base of a view: an argument or its base, another result, a tensor from outside, or else a hidden result.
void FunctionResults::find_base(FunctionRecorder& recorder, size_t result, Numbers& numbers) {
  const RefPtr<TensorImpl> base = all_[result].recorded.impl().base;
  if (const StandIn* s = recorder.inputs().stand_ins().of_tensor(base.get())) {
    all_[result].base_argument = s->argument >= 0 ? s->argument : s->base_of;
    return;
  }
  TensorImpl* const grad_of = recorder.grads().leaf_with_grad(Tensor(base));
  if (!base->graph && !grad_of) {
    all_[result].base_outside = recorder.hold(*base);
    return;
  }
  if (grad_of) {
    const auto found = std::ranges::find(all_, grad_of, &ResultBinding::grad_of);
    all_[result].base = static_cast<int>(found - all_.begin());
    if (found != all_.end()) return;
  } else {
    const auto [number, is_new] = numbers.try_emplace(base.get(), all_.size());
    all_[result].base = static_cast<int>(number->second);
    if (!is_new) return;
  }
  all_.emplace_back();
  if (base->graph) all_.back().recorded = Tensor(base);
  all_.back().grad_of = grad_of;
}

// Arguments, or bases of arguments, that have another history now.
void FunctionResults::find_written(FunctionRecorder& recorder) {
  for (const StandIn& s : recorder.inputs().stand_ins()) {
    const RefPtr<Record>& now = s.tensor.impl().grad_fn;
    if (s.tensor.impl().base || !now || now.get() == s.history.get()) continue;
    ResultBinding r;
    r.recorded = s.tensor;
    r.rewrites = s.argument >= 0 ? s.argument : s.base_of;
    r.rewrites_base = s.argument < 0;
    all_.push_back(std::move(r));
  }
}

size_t FunctionResults::add_made_leaf(TensorImpl& leaf) {
  const auto known = std::ranges::find(all_, &leaf, [](const ResultBinding& r) { return r.recorded.get(); });
  if (known != all_.end()) return static_cast<size_t>(known - all_.begin());
  ResultBinding r;
  r.recorded = Tensor(RefPtr<TensorImpl>(&leaf));
  r.is_leaf = is_made_leaf(r.recorded);
  all_.push_back(std::move(r));
  return all_.size() - 1;
}

Tensors FunctionResults::recorded() const {
  Tensors recorded;
  for (const ResultBinding& r : all_) recorded.push_back(r.recorded);
  return recorded;
}

void FunctionResults::finish(const RecordedFunction& recorded) {
  for (size_t i = 0; i < all_.size(); ++i) {
    ResultBinding& r = all_[i];
    r.location = recorded.results[i];
    if (!r.grad_of) continue;
    const auto& grads = recorded.grads;
    r.grad = std::ranges::find(grads, r.grad_of, &RecordedFunction::Grad::leaf) - grads.begin();
    RG_ASSERT(r.grad < grads.size());
    r.grad_of = nullptr;
  }
}

void FunctionResults::forget_recorded() {
  for (ResultBinding& r : all_) r.recorded.reset();
}

// ---- running ------------------------------------------------------------------------------------------------------

Tensors FunctionResults::make(const std::vector<ir::Binding>& bindings, const Tensors& outputs) const {
  Tensors made;
  for (const ResultBinding& r : all_) {
    made.push_back(r.location.defined() ? tensor_at(r.location, bindings, outputs) : Tensor());
    if (!made.back().defined()) continue;
    made.back().impl().is_multi_output_view = r.is_multi_output_view;
    made.back().impl().is_no_grad_view = r.is_no_grad_view;
    made.back().impl().is_function_view = r.is_function_view;
    if (r.is_inference) made.back().impl().storage()->mark_inference();
  }
  return made;
}

void FunctionResults::take_over(const Tensors& arguments, const Tensors& results,
                                SourceLocation where) const {
  for (size_t i = given_; i < all_.size(); ++i) {
    const ResultBinding& r = all_[i];
    if (r.rewrites < 0) continue;
    const Tensor& argument = arguments[static_cast<size_t>(r.rewrites)];
    take_over_history(r.rewrites_base ? Tensor(argument.impl().base) : argument, results[i], "compiled",
                      where);
  }
}

// Sets the bases of results that are views, and the base versions at which the views were made.
void FunctionResults::attach_views(const Tensors& arguments, const Tensors& results) const {
  for (size_t i = 0; i < given_; ++i) {
    const ResultBinding& r = all_[i];
    RefPtr<TensorImpl> base;
    if (r.base >= 0) base = results[static_cast<size_t>(r.base)].ref();
    if (r.base_outside) base = RefPtr<TensorImpl>(r.base_outside);
    if (r.base_argument >= 0) {
      const Tensor& argument = arguments[static_cast<size_t>(r.base_argument)];
      base = argument.impl().base ? argument.impl().base : argument.ref();
    }
    if (!base) continue;
    if (base->meta && base->meta->epoch && !r.follows_base)
      results[i].impl().need_meta().base_epoch = base->meta->epoch;
    results[i].impl().base = std::move(base);
    results[i].impl().set_made_at_version(results[i].version() - (r.is_outdated ? 1 : 0));
    if (r.follows_base) refresh_view(results[i].impl());
  }
}

Tensors FunctionResults::finish(Tensors results, const RecordedFunction& recorded, const Tensors& arguments,
                                const Tensors& outputs) const {
  for (size_t i = 0; i < all_.size(); ++i)
    if (all_[i].is_leaf) results[i].impl().requires_grad = true;
  for (const auto& [result, location] : recorded.result_grads)
    results[result].impl().need_meta().grad = grad_at(location, outputs);
  for (size_t i = 0; i < all_.size(); ++i)
    if (const auto& grad = all_[i].grad) results[i] = recorded.grads[*grad].meta(arguments).grad;
  attach_views(arguments, results);
  results.resize(given_);
  for (size_t i = 0; i < given_; ++i) {
    const ResultBinding& r = all_[i];
    if (r.argument >= 0) results[i] = arguments[static_cast<size_t>(r.argument)];
    if (r.outside) results[i] = Tensor(RefPtr<TensorImpl>(r.outside));
    if (r.same_as >= 0) results[i] = results[static_cast<size_t>(r.same_as)];
  }
  return results;
}

}  // namespace retrograd
