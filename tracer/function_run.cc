// Running a recorded function: see tracer/function_capture.h; start reading at FunctionCapture::run.
//
// What happens in a run, in order: the plan; gradients of leaves and what was written go where they belong; the ends get cells; one record
// links them to the arguments; arguments that were written to take over their place in the graph; views get their bases.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/inplace.h"
#include "engine/runner.h"
#include "ops/shape_ops.h"
#include "tracer/function_numbers.h"
#include "tracer/function_saved.h"
#include "tracer/profile.h"

namespace retrograd {
// ---- running -------------------------------------------------------------------------------------------------------------------------

Tensor FunctionCapture::grad_memory(TensorImpl& leaf) {
  const Tensor& grad = leaf.need_meta().grad;
  return grad.defined() && grad.impl().base ? Tensor(grad.impl().base) : grad;
}

std::vector<ir::Binding> FunctionCapture::bind(const Tensors& arguments) const {
  std::vector<ir::Binding> bindings;
  bindings.reserve(recorded_.inputs.size());
  for (const RecordedFunction::Input& input : recorded_.inputs) {
    ir::Binding b;
    b.tensor = input.argument >= 0  ? arguments[static_cast<size_t>(input.argument)]
               : input.base_of >= 0 ? Tensor(arguments[static_cast<size_t>(input.base_of)].impl().base)
               : input.grad_of      ? grad_memory(*input.grad_of)
               : input.grad_of_argument >= 0
                   ? grad_memory(arguments[static_cast<size_t>(input.grad_of_argument)].impl())
                   : input.captured;
    b.hook = input.hook;
    b.leaf = input.leaf.get();
    bindings.push_back(std::move(b));
  }
  return bindings;
}

namespace {

// A cell of its own for memory of the run or of an input.
Tensor tensor_at(const RecordedFunction::Place& place, const std::vector<ir::Binding>& bindings,
                 const Tensors& outputs) {
  return place.in((place.output >= 0 ? outputs[static_cast<size_t>(place.output)]
                                     : bindings[static_cast<size_t>(place.input)].tensor)
                      .impl());
}

Tensor grad_at(const RecordedFunction::Place& place, const Tensors& outputs) {
  const Tensor& memory = outputs[static_cast<size_t>(place.output)];
  return place.is(memory.impl(), memory.impl()) ? memory : place.in(memory.impl());
}

// A cell for `x`, with the same place in the graph, that does not change when x is written to; on other memory if that is given.
Tensor kept(const Tensor& x, const RefPtr<Storage>& memory) {
  TensorImpl& from = x.impl();
  if (from.requires_grad && from.is_leaf() && !memory) return x;
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->alias(from);
  if (memory) cell->set_storage(memory);
  cell->requires_grad = from.requires_grad;
  cell->grad_fn = from.grad_fn;
  cell->output_nr = from.output_nr;
  if (from.requires_grad && from.is_leaf()) cell->need_meta().stands_for = x.ref();
  return Tensor(std::move(cell));
}

}  // namespace

void FunctionCapture::give_grads(const Tensors& arguments, const Tensors& outputs) const {
  using End = RecordedFunction::Grad::End;
  for (const RecordedFunction::Grad& g : recorded_.grads)
    if (g.end != End::kept)
      g.meta(arguments).grad = g.end == End::none ? Tensor() : grad_at(g.place, outputs);
}

void FunctionCapture::write_back(const std::vector<ir::Binding>& bindings, const Tensors& outputs) const {
  for (const RecordedFunction::Write& w : recorded_.writes) {
    if (w.output < 0) continue;
    TensorImpl* value = outputs[static_cast<size_t>(w.output)].get();
    const Tensor& target = bindings[static_cast<size_t>(w.input)].tensor;
    if (value->storage() == target.impl().storage())  // computed there
      target.impl().storage()->bump_version();
    else
      run_into({&ops::info<ops::Clone>, {&value, 1}, nullptr, {}, 1},
               w.all_memory ? row_of(target.impl()) : target);
  }
}

namespace {

// The bytes of a memory, wherever it is.
Tensor bytes_of(const RefPtr<Storage>& memory, Device device) {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(kUInt8, device, {memory->nbytes()});
  contiguous_strides(cell->shape(), cell->mutable_strides());
  cell->set_storage(memory);
  return Tensor(std::move(cell));
}

RefPtr<Storage> copy_of(const RefPtr<Storage>& memory, Device device) {
  RefPtr<Storage> copy = executor_of(device).allocate_memory(memory->nbytes());
  const Tensor from = bytes_of(memory, device);
  TensorImpl* operand = from.get();
  run_into({&ops::info<ops::Clone>, {&operand, 1}, nullptr, {}, 1}, bytes_of(copy, device));
  return copy;
}

}  // namespace

// Before the run: what the bindings hold, for gradients that are differentiated again. What will be written over is copied.
Tensors FunctionCapture::bindings_to_keep(const std::vector<ir::Binding>& bindings) const {
  std::map<const Storage*, RefPtr<Storage>> copies;
  for (const RecordedFunction::Write& w : recorded_.writes) {
    const RefPtr<Storage>& memory = bindings[static_cast<size_t>(w.input)].tensor.impl().storage();
    RefPtr<Storage>& copy = copies[memory.get()];
    copy = copy_of(memory, bindings[static_cast<size_t>(w.input)].tensor.device());
  }
  Tensors keep;
  for (const ir::Binding& b : bindings) {
    keep.emplace_back();
    if (!b.tensor.defined()) continue;
    const auto copy = copies.find(b.tensor.impl().storage().get());
    keep.back() = kept(b.tensor, copy == copies.end() ? RefPtr<Storage>() : copy->second);
  }
  return keep;
}

std::shared_ptr<FunctionCapture::Saved> FunctionCapture::save(const std::vector<ir::Binding>& bindings,
                                                              Tensors keep, const Tensors& outputs,
                                                              const std::vector<Number>& numbers) {
  auto saved = std::make_shared<Saved>();
  saved->capture = shared_from_this();
  for (const RecordedFunction::Saved& s : recorded_.saved) {
    saved->values.push_back(s.place.defined() ? tensor_at(s.place, bindings, outputs)
                                              : seen(outputs[static_cast<size_t>(s.output)].impl()));
    saved->versions.push_back(saved->values.back().version());
  }
  for (const ir::Binding& b : bindings)
    saved->input_versions.push_back(b.tensor.defined() ? b.tensor.version() : 0);
  saved->bindings = bindings;
  for (size_t i = 0; i < bindings.size(); ++i) {
    saved->bindings[i].tensor = std::move(keep[i]);
    saved->binding_versions.push_back(
        saved->bindings[i].tensor.defined() ? saved->bindings[i].tensor.version() : 0);
  }
  saved->numbers = numbers;
  saved->keep_ahead(outputs);
  return saved;
}

// The ends that are computed.
Tensors FunctionCapture::results_of(const std::vector<ir::Binding>& bindings, const Tensors& outputs) const {
  Tensors made;
  for (const End& e : ends_) {
    made.push_back(e.place.defined() ? tensor_at(e.place, bindings, outputs) : Tensor());
    if (!made.back().defined()) continue;
    made.back().impl().is_multi_output_view = e.is_multi_output_view;
    made.back().impl().is_no_grad_view = e.is_no_grad_view;
    made.back().impl().is_function_view = e.is_function_view;
  }
  return made;
}

Tensors FunctionCapture::run(const Tensors& arguments, bool first, SourceLocation where) {
  std::vector<Number> numbers;
  try {
    numbers = numbers_;
  } catch (...) {
    settle_recorded();
    throw;
  }
  NumbersOfRun read(recorded_, planned_, std::move(numbers), first);
  numbers_are_open_ = false;
  read.read();
  try {
    return run(arguments, read, where);
  } catch (Exception& e) {
    if (const std::string made = read.updates_made(); !made.empty()) e.add_context(made);
    throw;
  } catch (const std::bad_alloc&) {
    const std::string made = read.updates_made();
    if (made.empty()) throw;
    throw RuntimeError("compile_step: memory ran out " + made);
  }
}

Tensors FunctionCapture::run(const Tensors& arguments, NumbersOfRun& read, SourceLocation where) {
  const std::vector<Number>& numbers = read.values();
  read.run.hooks_changed = [&](size_t nodes_begun) { check_hooks(arguments, nodes_begun, where); };
  struct GradsOfRun final : GradWatcher {
    GradsOfRun(const FunctionCapture& of, const Tensors& arguments, const FunctionRun& run)
        : of(of), arguments(arguments), run(run) {}
    void before_replaced(const TensorImpl& leaf, SourceLocation where) override {
      if (run.begun) of.check_grad(leaf, arguments, run.begun(), where);
    }
    const FunctionCapture& of;
    const Tensors& arguments;
    const FunctionRun& run;
  } grads(*this, arguments, read.run);
  std::optional<GradWatcher::Scope> watched;
  if (!recorded_.grads.empty()) watched.emplace(grads);
  for (const RecordedFunction::Grad& g : recorded_.grads)
    if (g.is_dropped_first) g.meta(arguments).grad.reset();
  std::vector<ir::Binding> bindings = bind(arguments);
  Tensors outputs, keep;
  if (!backwards_.empty()) keep = bindings_to_keep(bindings);
  {
    NoGradGuard no_grad;
    if (std::optional<Tensors> with_gradients = run_ahead(bindings, numbers)) {
      outputs = std::move(*with_gradients);
    } else {
      const ProfiledRun profiled(shared_from_this(), planned_, {}, numbers);
      outputs = plan_->run(bindings, numbers, &read.run);
    }
    give_grads(arguments, outputs);
    write_back(bindings, outputs);
  }
  Tensors results = results_of(bindings, outputs);
  if (!backwards_.empty()) {
    link(results, bindings, save(bindings, std::move(keep), outputs, numbers), where);
    take_over(arguments, results, where);
  }
  for (size_t i = 0; i < ends_.size(); ++i)
    if (ends_[i].is_leaf) results[i].impl().requires_grad = true;
  for (const auto& [result, place] : recorded_.result_grads)
    results[result].impl().need_meta().grad = grad_at(place, outputs);
  for (size_t i = 0; i < ends_.size(); ++i)
    if (const auto& grad = ends_[i].grad) results[i] = recorded_.grads[*grad].meta(arguments).grad;
  attach_views(arguments, results);
  results.resize(results_);
  for (size_t i = 0; i < results_; ++i) {
    const End& e = ends_[i];
    if (e.argument >= 0) results[i] = arguments[static_cast<size_t>(e.argument)];
    if (e.outside.defined()) results[i] = e.outside;
    if (e.same_as >= 0) results[i] = results[static_cast<size_t>(e.same_as)];
  }
  return results;
}

// Arguments that were written to take over the place that their new value has in the graph; base and views follow.
void FunctionCapture::take_over(const Tensors& arguments, const Tensors& results,
                                SourceLocation where) const {
  for (size_t i = results_; i < ends_.size(); ++i) {
    const End& e = ends_[i];
    if (e.rewrites < 0) continue;
    const Tensor& argument = arguments[static_cast<size_t>(e.rewrites)];
    take_over_history(e.rewrites_base ? Tensor(argument.impl().base) : argument, results[i], "compiled",
                      where);
  }
}

// Results that are views get their bases, with which they are in step.
void FunctionCapture::attach_views(const Tensors& arguments, const Tensors& results) const {
  for (size_t i = 0; i < results_; ++i) {
    const End& e = ends_[i];
    RefPtr<TensorImpl> base;
    if (e.base >= 0) base = results[static_cast<size_t>(e.base)].ref();
    if (e.base_outside.defined()) base = e.base_outside.ref();
    if (e.base_argument >= 0) {
      const Tensor& argument = arguments[static_cast<size_t>(e.base_argument)];
      base = argument.impl().base ? argument.impl().base : argument.ref();
    }
    if (!base) continue;
    if (base->meta && base->meta->epoch && !e.follows_base)
      results[i].impl().need_meta().base_epoch = base->meta->epoch;
    results[i].impl().base = std::move(base);
    results[i].impl().set_made_at_version(results[i].version() - (e.is_outdated ? 1 : 0));
    if (e.follows_base) refresh_view(results[i].impl());
  }
}

}  // namespace retrograd
