// Gradients of leaves in a recorded function: see tracer/function_recorder.h.
//
// While it records, .grad of a leaf is a recorded value, and LeafGrad remembers what it was; restore() puts that back. Where host code comes, a
// node puts .grad where it is eagerly at that place (publish_grad); at the end the rest becomes outputs (finish_grads).
// A hook behind the accumulation may write to the gradient and to the leaf, which are read where they lie. It may also drop .grad or put
// another tensor there: that stays so, and what is recorded after it reads what the hook left. A step that reads a gradient which the hook
// dropped in a run fails there, since eagerly it would have done something else. A tensor that a hook puts there lies as .grad did before once
// the step writes to it.
#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "engine/runner.h"
#include "ops/arithmetic.h"
#include "ops/shape_ops.h"
#include "tracer/function_recorder.h"

namespace retrograd {

namespace {

using GradLayout = std::optional<RecordedFunction::Layout>;  // in the operand; none: it is that

// .grad of a leaf gets the operand, or is dropped.
class GiveGradCode final : public HostCode {
 public:
  GiveGradCode(const TensorType& type, RefPtr<TensorImpl> leaf, bool is_dropped, GradLayout layout)
      : leaf_(std::move(leaf)), is_dropped_(is_dropped), layout_(std::move(layout)) {
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
  const RefPtr<TensorImpl> leaf_;  // null: the last operand
  const bool is_dropped_;
  const GradLayout layout_;
};

}  // namespace

// A hook that is called with a leaf; what .grad is then.
class PostAccumulateCode final : public HostCode {
 public:
  PostAccumulateCode(const TensorType& type, RefPtr<Hook> hook, RefPtr<TensorImpl> leaf, GradLayout layout)
      : hook_(std::move(hook)), leaf_(std::move(leaf)), layout_(std::move(layout)) {
    types = {type};
  }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    TensorImpl& leaf = leaf_ ? *leaf_ : *operands.back();
    call(leaf);
    const Tensor& left = leaf.need_meta().grad;
    const bool is_there = left.defined() && left.impl().type() == (layout_ ? layout_->type : types[0]);
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

  bool is_read = false;  // by what is recorded after it

 private:
  // It may replace .grad of its own leaf.
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
    if (hook_->is_live()) run_hook({hook_.get(), &leaf}, {}, {});
  }
  // The memory with what the hook has left: the same, or, where it put another tensor there, a copy that has this in its place.
  Tensor memory_of(const Tensor& left, const TensorImpl& memory) const {
    if (!layout_) return seen(contiguous(left).impl());
    if (layout_->is(left.impl(), memory)) return seen(memory);
    const Tensor copy = clone(seen(memory));
    TensorImpl* value = left.get();
    run_into({&ops::info<ops::Clone>, {&value, 1}, nullptr, {}, 1}, layout_->in(copy.impl()));
    return copy;
  }

  const RefPtr<Hook> hook_;
  const RefPtr<TensorImpl> leaf_;
  const GradLayout layout_;
};

// ---- accumulation --------------------------------------------------------------------------------------------------------------------

FunctionRecorder::LeafGrad& FunctionRecorder::leaf_grad(TensorImpl& leaf, bool is_dropped) {
  const auto [number, is_new] = grad_numbers_.try_emplace(&leaf, grads_.size());
  if (is_new) grads_.push_back({RefPtr<TensorImpl>(&leaf), leaf.need_meta().grad, is_dropped});
  return grads_[number->second];
}

// Null of a leaf whose gradient the function has not looked at.
FunctionRecorder::LeafGrad* FunctionRecorder::known_grad(const TensorImpl& leaf) {
  const auto number = grad_numbers_.find(&leaf);
  return number == grad_numbers_.end() ? nullptr : &grads_[number->second];
}

RefPtr<TensorImpl> FunctionRecorder::leaf_with_grad(const Tensor& tensor) const {
  for (const LeafGrad& g : grads_)
    if (tensor.defined() && g.leaf->need_meta().grad.get() == tensor.get() &&
        (!g.leaf->graph || argument_of(*g.leaf) >= 0))
      return g.leaf;
  return {};
}

// The argument that this is the stand-in of; -1: of none.
int FunctionRecorder::argument_of(const TensorImpl& cell) const {
  const StandIn* const s = stand_ins_.of_tensor(&cell);
  return s ? s->argument : -1;
}

void FunctionRecorder::grad_is_replaced(TensorImpl& leaf) { leaf_grad(leaf, true); }

// From now on the gradient that a leaf has at the beginning is an input, whichever tensor that is in a run. An argument's stand-in has that of
// the argument.
void FunctionRecorder::grad_is_read(TensorImpl& leaf) {
  if (LeafGrad* const known = known_grad(leaf)) {
    known->last_read = effects_;
    for (PostAccumulateCode* hook : known->hooks) hook->is_read = true;
  }
  const auto argument = argument_of(leaf);
  if (leaf.graph && argument < 0) return;
  const LeafGrad& g = leaf_grad(leaf, false);
  TensorImpl* grad = leaf.need_meta().grad.get();
  if (!grad || grad->graph || grad != g.before.get() || roots_.contains(grad->storage().get())) return;
  Root& root = capture(*grad);
  root.is_gradient = true;
  RecordedFunction::Input& input = inputs_[static_cast<size_t>(root.input)];
  input.grad_of_argument = argument;
  if (argument < 0) input.grad_of = RefPtr<TensorImpl>(&leaf);
}

// The value that has arrived becomes .grad, in a cell of its own; whether it needs memory of its own shows in the end.
void FunctionRecorder::accumulate(TensorImpl& leaf, const Tensor& grad) {
  if (!(grad.impl().type() == leaf.type()))
    fail(Category::cotangent_mismatch, "accumulate_grad",
         fmt::format("a gradient of type {} for a leaf of type {}", to_string(grad.impl().type()),
                     to_string(leaf.type())));
  if (const StandIn* const s = stand_ins_.of_leaf(&leaf); s && (s->tensor.get() != &leaf || s->argument < 0))
    refuse(Category::unsupported,
           "a recorded function runs a backward beyond its arguments. Hint: ask for gradients with grad()");
  leaf_grad(leaf, false);
  grad_is_read(leaf);
  Tensor& sum = leaf.need_meta().grad;
  if (!sum.defined())
    sum = GradMode::is_enabled() ? clone(grad) : new_grad(grad, leaf);
  else if (GradMode::is_enabled())
    sum = add(sum, grad);
  else
    sum.add_(grad);
}

namespace {

// Of a leaf that is dense but not row-major: its dims from the outermost in memory to the innermost.
IntArray dims_in_memory(const TensorImpl& leaf) {
  if (leaf.is_contiguous() || !has_layout_of_grad(leaf, leaf)) return {};
  IntArray dims(static_cast<size_t>(leaf.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  std::ranges::stable_sort(dims, std::greater(), [&](int64_t d) { return leaf.strides()[d]; });
  return dims;
}

}  // namespace

// It lies as the leaf does, where that is dense (engine/accumulate.cc): in a row-major value with the dims in the order that they have in
// memory.
Tensor FunctionRecorder::new_grad(const Tensor& grad, const TensorImpl& leaf) {
  const IntArray dims = dims_in_memory(leaf);
  if (dims.empty()) return present_value(contiguous(grad).impl());
  const Tensor row = contiguous(permute(grad, dims));
  const Tensor memory = present_value(row.impl());
  if (Root& from = root_of(row.impl()); !from.history)  // perhaps all of it: then no view of a view
    root_of(memory.impl()).value = memory.impl().value_id = shown(from, row.impl());
  IntArray back(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) back[static_cast<size_t>(dims[i])] = static_cast<int64_t>(i);
  Tensor made = make(leaf.type(), value_of(permute(memory, back)));
  std::copy_n(leaf.strides(), leaf.rank(), made.impl().mutable_strides());
  made.impl().set_storage(memory.impl().storage());
  return made;
}

// ---- what host code sees -------------------------------------------------------------------------------------------------------------

FunctionRecorder::LeafOfRun FunctionRecorder::leaf_of_run(TensorImpl& leaf) {
  if (const StandIn* const s = stand_ins_.of_tensor(&leaf))
    return {{}, graph_.inputs()[static_cast<size_t>(input_of(s->tensor))].value};
  return {RefPtr<TensorImpl>(&leaf), ir::kNoValue};
}

void FunctionRecorder::publish_grad(LeafGrad& g) {
  const Tensor grad = g.leaf->need_meta().grad;
  const bool is_first = g.outside == ir::kNoValue && !g.is_dropped_outside;  // host code has seen none
  if (!grad.defined()) {
    if (g.is_dropped_outside || (is_first && (g.is_dropped_first || !g.before.defined()))) return;
  } else if (is_first ? grad.get() == g.before.get() : memory_of_grad(grad).value == g.outside) {
    return;
  }
  const LeafOfRun leaf = leaf_of_run(*g.leaf);
  const GradMemory memory = grad.defined() ? memory_of_grad(grad) : GradMemory{input_value(root_of(*g.leaf))};
  std::vector<ir::ValueId> operands{memory.value};
  if (leaf.argument != ir::kNoValue) operands.push_back(leaf.argument);
  g.is_dropped_outside = !grad.defined();
  g.outside = emit_host(host::give_grad, operands,
                        RefPtr<HostCode>::adopt(new GiveGradCode(graph_.type(memory.value), leaf.outside,
                                                                 g.is_dropped_outside, memory.layout)));
  if (grad.defined())
    lies_outside(grad, g.outside);
  else
    g.outside = ir::kNoValue;
}

// What host code has been given, or has given: the tensor has this value now.
void FunctionRecorder::lies_outside(const Tensor& tensor, ir::ValueId value) {
  Root& root = root_of(tensor.impl());
  if (root.input >= 0) return;  // it lay there before
  root.value = value;
  root.is_written = has_written_ = true;
  root.views.clear();
}

void FunctionRecorder::emit_post_accumulate(const HookAttrs& attrs, SourceLocation where) {
  before_code();
  LeafGrad& g = leaf_grad(*attrs.leaf, false);
  const Tensor grad = attrs.leaf->need_meta().grad;
  const LeafOfRun leaf = leaf_of_run(*attrs.leaf);
  const GradMemory memory = memory_of_grad(grad);
  auto* code = new PostAccumulateCode(graph_.type(memory.value), RefPtr<Hook>(attrs.hook), leaf.outside,
                                      memory.layout);
  g.hooks.push_back(code);
  std::vector<ir::ValueId> operands{memory.value};
  if (leaf.argument != ir::kNoValue) operands.push_back(leaf.argument);
  g.outside = emit_host(host::post_accumulate, operands, RefPtr<HostCode>::adopt(code), where);
  lies_outside(grad, g.outside);
}

// ---- the end -------------------------------------------------------------------------------------------------------------------------

// An argument that is used as a tensor from outside as well would have two gradients.
void FunctionRecorder::check_one_leaf(const TensorImpl& leaf) const {
  const StandIn* const s = stand_ins_.standing_for(&leaf);
  if (s && grad_numbers_.contains(s->tensor.get()))
    refuse(Category::unsupported,
           "a recorded function gives an argument a gradient that it also uses as a leaf from outside. "
           "Hint: use the argument only");
}

void FunctionRecorder::finish_grads(const Tensors& results, RecordedFunction& out) {
  for (const LeafGrad& g : grads_) {
    const Tensor& grad = g.leaf->need_meta().grad;
    if (g.leaf->graph && argument_of(*g.leaf) < 0) {  // made in the function
      const auto result = std::ranges::find(results, g.leaf.get(), &Tensor::get);
      if (result != results.end() && grad.defined())
        out.result_grads.emplace_back(result - results.begin(), place_of_grad(grad));
      continue;
    }
    using End = RecordedFunction::Grad::End;
    RecordedFunction::Grad end{
        g.leaf, argument_of(*g.leaf), g.is_dropped_first, g.before.defined(), g.last_read, End::kept};
    check_one_leaf(*g.leaf);
    const bool is_first = g.outside == ir::kNoValue && !g.is_dropped_outside;
    if (!grad.defined() && !g.is_dropped_outside) end.end = End::none;
    if (grad.defined() &&
        (is_first ? grad.get() != g.before.get() : memory_of_grad(grad).value != g.outside)) {
      end.end = End::computed;
      end.place = place_of_grad(grad);
    }
    out.grads.push_back(std::move(end));
  }
}

}  // namespace retrograd
