// Running a recorded function: see tracer/function/sized_function.h; start reading at SizedFunction::run.
//
// A run, in order: the plan; gradients of leaves and written values are stored in their places; the results get
// cells; one record links them to the arguments; arguments that were written to take over their place in the graph;
// views get their bases.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/inplace.h"
#include "engine/runner.h"
#include "ops/shape_ops.h"
#include "tracer/function/opaque_value.h"
#include "tracer/function/run_numbers.h"
#include "tracer/function/saved_values.h"
#include "tracer/function/sized_function.h"
#include "tracer/observe/profile.h"

namespace retrograd::inline v0 {

Tensor grad_memory(TensorImpl& leaf) {
  const Tensor& grad = leaf.need_meta().grad;
  return grad.defined() && grad.impl().base ? Tensor(grad.impl().base) : grad;
}

std::vector<ir::Binding> SizedFunction::bind(const Tensors& arguments) const {
  std::vector<ir::Binding> bindings;
  bindings.reserve(recorded_.inputs.size());
  for (const RecordedFunction::Input& input : recorded_.inputs) {
    ir::Binding b;
    b.tensor = input.argument >= 0  ? arguments[static_cast<size_t>(input.argument)]
               : input.base_of >= 0 ? Tensor(arguments[static_cast<size_t>(input.base_of)].impl().base)
               : input.grad_of      ? grad_memory(*input.grad_of)
               : input.grad_of_argument >= 0
                   ? grad_memory(arguments[static_cast<size_t>(input.grad_of_argument)].impl())
                   : Tensor(RefPtr<TensorImpl>(input.captured));
    b.hook = input.hook;
    b.code = input.code;
    b.leaf = input.leaf;
    bindings.push_back(std::move(b));
  }
  return bindings;
}

namespace {

// A cell for `x`, with the same place in the graph, that does not change when x is written to; on `memory` if not
// null.
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

void SizedFunction::give_grads(const Tensors& arguments, const Tensors& outputs) const {
  using After = RecordedFunction::Grad::After;
  for (const RecordedFunction::Grad& g : recorded_.grads)
    if (g.after != After::kept)
      g.meta(arguments).grad = g.after == After::none ? Tensor() : grad_at(g.location, outputs);
}

void SizedFunction::write_back(const std::vector<ir::Binding>& bindings, const Tensors& outputs) const {
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

// The bytes of a memory on any device.
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

// Before the run: the values of the bindings, for gradients that are differentiated again. Values that will be
// overwritten are copied.
Tensors SizedFunction::bindings_to_keep(const std::vector<ir::Binding>& bindings) const {
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

std::shared_ptr<SavedRun> SizedFunction::save(const std::vector<ir::Binding>& bindings, Tensors keep,
                                              const Tensors& outputs, const std::vector<Number>& numbers) {
  auto saved = std::make_shared<SavedRun>();
  saved->function = shared_from_this();
  for (const RecordedFunction::Saved& s : backwards_->saved()) {
    saved->values.push_back(s.location.defined() ? tensor_at(s.location, bindings, outputs)
                            : s.output < 0       ? Tensor()
                                                 : seen(outputs[static_cast<size_t>(s.output)].impl()));
    saved->versions.push_back(saved->values.back().defined() ? saved->values.back().version() : 0);
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
  if (precomputed_) saved->precomputed = precomputed_->of_run(outputs);
  return saved;
}

Tensors SizedFunction::run(const Tensors& arguments, bool first, SourceLocation where) {
  std::vector<Number> numbers;
  try {
    numbers = numbers_;
  } catch (...) {
    if (first) capture_->settle_recorded();
    throw;
  }
  NumbersOfRun read(recorded_, planned_, std::move(numbers), first);
  if (first) capture_->give_numbers_to_run();
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

namespace {

// Checks hooks and gradients that user code changes during a run.
struct CodeWatcher final : RunWatcher, GradWatcher {
  CodeWatcher(const FunctionGuards& guards, const ir::Graph& graph, const Tensors& arguments,
              SourceLocation where)
      : guards(guards), graph(graph), arguments(arguments), where(where) {}
  uint32_t annotations_changed(const PlanRun& of_run) override {
    guards.check_hooks(arguments, RecordedFunction::effects_among(graph, of_run.nodes_begun()), where);
    return kGoOn;
  }
  void before_replaced(const TensorImpl& leaf, SourceLocation replaced) override {
    if (run)
      guards.check_grad(leaf, arguments, RecordedFunction::effects_among(graph, run->nodes_begun()),
                        replaced);
  }
  const FunctionGuards& guards;
  const ir::Graph& graph;
  const Tensors& arguments;
  const SourceLocation where;
};

}  // namespace

// The outputs of the forward, possibly followed by gradients.
Tensors SizedFunction::run_plans(const Tensors& arguments, const std::vector<ir::Binding>& bindings,
                                 NumbersOfRun& read, SourceLocation where) {
  if (precomputed_ && precomputed_->expects()) {
    const ProfiledRun profiled(shared_from_this(), precomputed_->graph(), {}, read.values());
    if (std::optional<Tensors> outputs = precomputed_->run(bindings, read.values())) return *outputs;
  }
  CodeWatcher watcher(capture_->guards(), planned_, arguments, where);
  std::optional<GradWatcher::Scope> watched;
  if (!recorded_.grads.empty()) watched.emplace(watcher);
  const ProfiledRun profiled(shared_from_this(), planned_, {}, read.values());
  return run_plan(*plan_, bindings, read.values(), read.nodes, &watcher);
}

Tensors SizedFunction::run(const Tensors& arguments, NumbersOfRun& read, SourceLocation where) {
  for (const RecordedFunction::Grad& g : recorded_.grads)
    if (g.is_dropped_first) g.meta(arguments).grad.reset();
  const std::vector<ir::Binding> bindings = bind(arguments);
  Tensors outputs, keep;
  if (backwards_) keep = bindings_to_keep(bindings);
  {
    NoGradGuard no_grad;
    const detail::AutocastOff no_casts;  // user code in a graph has the autocast that was recorded with it
    outputs = run_plans(arguments, bindings, read, where);
    give_grads(arguments, outputs);
    write_back(bindings, outputs);
  }
  Tensors results = results_.make(bindings, outputs);
  if (backwards_) {
    link(results, bindings, save(bindings, std::move(keep), outputs, read.values()), where);
    results_.take_over(arguments, results, where);
  }
  return results_.finish(std::move(results), recorded_, arguments, outputs);
}

}  // namespace retrograd
