// See tracer/function/leaf_gradients.h.
#include "tracer/function/leaf_gradients.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "engine/runner.h"
#include "ops/arithmetic.h"
#include "ops/shape_ops.h"
#include "tracer/function/function_recorder.h"
#include "tracer/function/opaque_value.h"

namespace retrograd::inline v0 {

std::vector<RefPtr<Hook>> live_hooks(const TensorImpl& leaf) {
  std::vector<RefPtr<Hook>> live;
  all_hooks(leaf, [&](const RefPtr<Hook>& h) {
    live.push_back(h);
    return true;
  });
  return live;
}

namespace {

using GradLayout = std::optional<Layout>;  // in the operand; none: the operand itself

// Sets .grad of a leaf to the operand, or drops it.
class GiveGradCode final : public HostCode {
 public:
  GiveGradCode(const TensorType& type, TensorImpl* leaf, bool is_dropped, GradLayout layout)
      : leaf_(leaf), is_dropped_(is_dropped), layout_(std::move(layout)) {
    types = {type};
  }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    TensorImpl& leaf = leaf_ ? *leaf_ : *operands.back();
    results[0] = seen(*operands[0]);
    if (layout_) results[0] = contiguous(results[0]);
    leaf.need_meta().grad = is_dropped_ ? Tensor()
                            : layout_   ? layout_->in(results[0].impl())
                                        : seen(*operands[0]);
  }
  void replay(std::span<TensorImpl* const> operands, Tensor* results) override {
    results[0] = Tensor(RefPtr<TensorImpl>(operands[0]));
  }

 private:
  TensorImpl* const leaf_;  // null: the last operand
  const bool is_dropped_;
  const GradLayout layout_;
};

}  // namespace

// Calls a post-accumulate hook with a leaf; returns the .grad that it leaves.
class PostAccumulateCode final : public HostCode {
 public:
  PostAccumulateCode(const TensorType& type, RefPtr<Hook> hook, TensorImpl* leaf, GradLayout layout)
      : hook_(std::move(hook)), leaf_(leaf), layout_(std::move(layout)) {
    types = {type};
  }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    TensorImpl& leaf = leaf_ ? *leaf_ : *operands.back();
    call(leaf);
    const Tensor& left = leaf.need_meta().grad;
    const bool is_there = left.defined() && left.impl().type() == leaf.type();
    if (!is_there && is_read)
      throw Error(
          Category::unsupported,
          "a post-accumulate hook dropped .grad of a leaf, which the recorded function reads later. Hint: "
          "set_traceable(), or drop it in the function");
    results[0] = is_there ? memory_of(left, *operands[0]) : seen(*operands[0]);
  }

  void replay(std::span<TensorImpl* const> operands, Tensor* results) override {
    results[0] = Tensor(RefPtr<TensorImpl>(operands[0]));
  }

  bool is_read = false;  // by later nodes

 private:
  // The hook may replace .grad of its own leaf.
  void call(TensorImpl& leaf) const {
    struct OwnLeaf final : GradWatcher {
      explicit OwnLeaf(const TensorImpl& own) : own(own) {}
      void before_replaced(const TensorImpl& leaf, SourceLocation where) override {
        if (&leaf != &own && outer) outer->before_replaced(leaf, where);
      }
      const TensorImpl& own;
      GradWatcher* const outer = current;
    } watcher(leaf);
    const GradWatcher::Scope scope(watcher);
    if (hook_->is_live()) run_hook({{}, hook_.get(), &leaf}, {}, {});
  }
  // The memory after the hook: the same, or, if the hook assigned another tensor, a copy with that tensor in place.
  Tensor memory_of(const Tensor& left, const TensorImpl& memory) const {
    if (!layout_) return seen(contiguous(left).impl());
    if (layout_->is(left.impl(), memory)) return seen(memory);
    const Tensor copy = clone(seen(memory));
    TensorImpl* value = left.get();
    run_into({&ops::info<ops::Clone>, {&value, 1}, nullptr, {}, 1}, layout_->in(copy.impl()));
    return copy;
  }

  const RefPtr<Hook> hook_;
  TensorImpl* const leaf_;
  const GradLayout layout_;
};

// ---- accumulation -------------------------------------------------------------------------------------------------

LeafGradients::LeafGrad& LeafGradients::grad_of(TensorImpl& leaf, bool is_dropped) {
  const auto [number, is_new] = numbers_.try_emplace(&leaf, grads_.size());
  if (is_new) grads_.push_back({RefPtr<TensorImpl>(&leaf), leaf.need_meta().grad, is_dropped});
  return grads_[number->second];
}

// Null for a leaf whose gradient the function has neither read nor written.
LeafGradients::LeafGrad* LeafGradients::known(const TensorImpl& leaf) {
  const auto number = numbers_.find(&leaf);
  return number == numbers_.end() ? nullptr : &grads_[number->second];
}

TensorImpl* LeafGradients::leaf_with_grad(const Tensor& tensor) const {
  for (const LeafGrad& g : grads_)
    if (tensor.defined() && g.leaf->need_meta().grad.get() == tensor.get() &&
        (!g.leaf->graph || of_.inputs().argument_of(*g.leaf) >= 0))
      return g.leaf.get();
  return nullptr;
}

void LeafGradients::note_reached(TensorImpl& leaf) {
  if (!leaf.graph) of_.hold(leaf);
  reached_.push_back({RefPtr<TensorImpl>(&leaf), live_hooks(leaf), of_.effects()});
}

void LeafGradients::is_read(TensorImpl& leaf) {
  if (LeafGrad* const g = known(leaf)) {
    g->last_read = of_.effects();
    for (PostAccumulateCode* hook : g->hooks) hook->is_read = true;
  }
  const int argument = of_.inputs().argument_of(leaf);
  if (leaf.graph && argument < 0) return;
  const LeafGrad& g = grad_of(leaf, false);
  TensorImpl* grad = leaf.need_meta().grad.get();
  if (!grad || grad->graph || grad != g.before.get() || of_.memory().find(grad->storage().get())) return;
  of_.inputs().capture_grad(*grad, leaf, argument);
}

// Uses a separate cell; whether it needs separate memory is decided at the end.
void LeafGradients::accumulate(TensorImpl& leaf, const Tensor& grad) {
  if (!(grad.impl().type() == leaf.type()))
    fail(Category::cotangent_mismatch, "accumulate_grad",
         fmt::format("a gradient of type {} for a leaf of type {}", to_string(grad.impl().type()),
                     to_string(leaf.type())));
  if (const StandIn* const s = of_.inputs().stand_ins().of_leaf(&leaf);
      s && (s->tensor.get() != &leaf || s->argument < 0))
    of_.refuse(
        Category::unsupported,
        "a recorded function runs a backward beyond its arguments. Hint: ask for gradients with grad()");
  grad_of(leaf, false);
  is_read(leaf);
  Tensor& sum = leaf.need_meta().grad;
  if (!sum.defined())
    sum = GradMode::is_enabled() ? clone(grad) : new_grad(grad, leaf);
  else if (GradMode::is_enabled())
    sum = add(sum, grad);
  else
    sum.add_(grad);
}

namespace {

// For a leaf that is dense but not row-major: its dims from outermost to innermost in memory.
IntArray dims_in_memory(const TensorImpl& leaf) {
  if (leaf.is_contiguous() || !has_layout_of_grad(leaf, leaf)) return {};
  IntArray dims(static_cast<size_t>(leaf.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  std::ranges::stable_sort(dims, std::greater(),
                           [&](int64_t d) { return leaf.stride(static_cast<int>(d)).hint(); });
  return dims;
}

}  // namespace

// It has the layout of the leaf if the leaf is dense (engine/accumulate.cc): it is stored in a row-major value whose
// dims are in memory order.
Tensor LeafGradients::new_grad(const Tensor& grad, const TensorImpl& leaf) {
  RecordedMemory& memory = of_.memory();
  const IntArray dims = dims_in_memory(leaf);
  if (dims.empty()) return memory.present_value(contiguous(grad).impl());
  const Tensor row = contiguous(permute(grad, dims));
  const Tensor value = memory.present_value(row.impl());
  // It may be all of the root: this avoids a view of a view.
  if (Root& from = memory.root_of(row.impl()); !from.history)
    memory.root_of(value.impl()).value = value.impl().value_id = memory.shown(from, row.impl());
  IntArray back(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) back[static_cast<size_t>(dims[i])] = static_cast<int64_t>(i);
  Tensor made = of_.make(leaf.type(), of_.value_of(permute(value, back)));
  std::copy_n(leaf.strides(), leaf.rank(), made.impl().mutable_strides());
  made.impl().set_storage(value.impl().storage());
  return made;
}

// ---- what host code sees ------------------------------------------------------------------------------------------

LeafGradients::LeafOfRun LeafGradients::leaf_of_run(TensorImpl& leaf) {
  FunctionInputs& inputs = of_.inputs();
  if (const StandIn* const s = inputs.stand_ins().of_tensor(&leaf))
    return {nullptr, of_.graph().inputs()[static_cast<size_t>(inputs.input_of(s->tensor))].value};
  return {of_.hold(leaf), ir::kNoValue};
}

// If .grad differs in geometry from the whole of a computed memory, host code is passed the whole memory.
LeafGradients::GradMemory LeafGradients::memory_of(const Tensor& grad) {
  const ir::ValueId value = of_.value_of(grad);
  const Root& root = of_.memory().root_of(grad.impl());
  if (root.input >= 0 || !root.cell->is_contiguous() || same_geometry(grad.impl(), *root.cell))
    return {value};
  const Layout layout = Layout::of(grad.impl(), root.cell->offset());
  if (layout.is_symbolic()) throw FixedSizesNeeded("user code sees a .grad that is a part of its memory");
  return {root.value, layout};
}

// Whether a defined .grad differs from the one that host code saw last, or, if it saw none, from the initial one.
bool LeafGradients::is_changed(const LeafGrad& g, const Tensor& grad) {
  return g.was_published() ? memory_of(grad).value != g.outside : grad.get() != g.before.get();
}

void LeafGradients::publish() {
  for (size_t i = 0; i < grads_.size(); ++i) publish(grads_[i]);
}

void LeafGradients::publish(LeafGrad& g) {
  const Tensor grad = g.leaf->need_meta().grad;
  if (!grad.defined()) {
    if (g.is_dropped_outside || (!g.was_published() && (g.is_dropped_first || !g.before.defined()))) return;
  } else if (!is_changed(g, grad)) {
    return;
  }
  const LeafOfRun leaf = leaf_of_run(*g.leaf);
  RecordedMemory& memory = of_.memory();
  const GradMemory given =
      grad.defined() ? memory_of(grad) : GradMemory{memory.input_value(memory.root_of(*g.leaf))};
  std::vector<ir::ValueId> operands{given.value};
  if (leaf.argument != ir::kNoValue) operands.push_back(leaf.argument);
  g.is_dropped_outside = !grad.defined();
  auto code = RefPtr<HostCode>::adopt(
      new GiveGradCode(of_.graph().type(given.value), leaf.outside, g.is_dropped_outside, given.layout));
  g.outside = of_.host().emit(ops::give_grad, operands, std::move(code));
  if (grad.defined())
    memory.lies_outside(grad, g.outside);
  else
    g.outside = ir::kNoValue;
}

void LeafGradients::emit_post_accumulate(const HookAttrs& attrs, SourceLocation where) {
  of_.host().before_code();
  LeafGrad& g = grad_of(*attrs.leaf, false);
  const Tensor grad = attrs.leaf->need_meta().grad;
  const LeafOfRun leaf = leaf_of_run(*attrs.leaf);
  const GradMemory memory = memory_of(grad);
  auto* code = new PostAccumulateCode(of_.graph().type(memory.value), RefPtr<Hook>(attrs.hook), leaf.outside,
                                      memory.layout);
  g.hooks.push_back(code);
  std::vector<ir::ValueId> operands{memory.value};
  if (leaf.argument != ir::kNoValue) operands.push_back(leaf.argument);
  g.outside = of_.host().emit(ops::post_accumulate, operands, RefPtr<HostCode>::adopt(code), where);
  of_.memory().lies_outside(grad, g.outside);
}

// ---- the end ------------------------------------------------------------------------------------------------------

// An argument that is also used as a tensor from outside would have two gradients.
void LeafGradients::check_one_leaf(const TensorImpl& leaf) const {
  const StandIn* const s = of_.inputs().stand_ins().standing_for(&leaf);
  if (s && numbers_.contains(s->tensor.get()))
    of_.refuse(Category::unsupported,
               "a recorded function gives an argument a gradient that it also uses as a leaf from outside. "
               "Hint: use the argument only");
}

// A gradient in computed memory may have any layout there; one in memory of an input is copied.
Location LeafGradients::location_of(const Tensor& grad) {
  const TensorImpl& cell = grad.impl();
  const Root& root = of_.memory().root_of(grad.impl());
  if (root.seen < 0 && root.cell->is_contiguous() && root.cell->dtype() == cell.dtype())
    return of_.memory().location_of(grad);
  const ir::ValueId value = of_.value_of(grad);
  const Tensor row = of_.memory().computed(cell.type(), value);
  Location location{Layout::of(row.impl(), 0)};
  location.output = of_.outputs().add(value, true);
  return location;
}

RecordedFunction::Grad LeafGradients::after(const LeafGrad& g) {
  using After = RecordedFunction::Grad::After;
  const Tensor& grad = g.leaf->need_meta().grad;
  RecordedFunction::Grad made{of_.hold(*g.leaf),  of_.inputs().argument_of(*g.leaf),
                              g.is_dropped_first, g.before.defined(),
                              g.last_read,        After::kept};
  check_one_leaf(*g.leaf);
  if (!grad.defined() && !g.is_dropped_outside) made.after = After::none;
  if (grad.defined() && is_changed(g, grad)) {
    made.after = After::computed;
    made.location = location_of(grad);
  }
  return made;
}

void LeafGradients::finish(const Tensors& results, RecordedFunction& out) {
  for (const LeafGrad& g : grads_) {
    const Tensor& grad = g.leaf->need_meta().grad;
    if (!g.leaf->graph || of_.inputs().argument_of(*g.leaf) >= 0) {
      out.grads.push_back(after(g));
      continue;
    }
    const auto result = std::ranges::find(results, g.leaf.get(), &Tensor::get);  // made in the function
    if (result != results.end() && grad.defined())
      out.result_grads.emplace_back(result - results.begin(), location_of(grad));
  }
}

void LeafGradients::restore() {
  for (LeafGrad& g : grads_) g.leaf->need_meta().grad = std::move(g.before);
  grads_.clear();
  numbers_.clear();
}

}  // namespace retrograd
