// See tracer/function_recorder.h.
#include "tracer/function_recorder.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/runner.h"
#include "ir/bookkeeping.h"
#include "ir/each_field.h"
#include "ops/arithmetic.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd {
namespace {

// As if it had so many bytes: a recorded value has it for its version, and for who shares it.
RefPtr<Storage> no_memory(int64_t bytes) { return Storage::wrap(nullptr, bytes, nullptr, nullptr); }

bool same_geometry(const TensorImpl& a, const TensorImpl& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape()) || a.storage_offset() != b.storage_offset())
    return false;
  for (int i = 0; i < a.rank(); ++i)
    if (a.shape()[i].raw() > 1 && a.strides()[i] != b.strides()[i]) return false;
  return true;
}

// Place of the last element in memory; before the first one when there is none.
int64_t last_element(const TensorImpl& x) {
  int64_t last = x.storage_offset();
  for (int i = 0; i < x.rank(); ++i) {
    if (x.shape()[i].raw() == 0) return -1;
    last += (x.shape()[i].raw() - 1) * x.strides()[i];
  }
  return last;
}

bool lies_within(const TensorImpl& view, const TensorImpl& root) {
  return view.storage_offset() >= root.storage_offset() && last_element(view) <= last_element(root);
}

}  // namespace

FunctionRecorder::~FunctionRecorder() { restore(); }

void FunctionRecorder::restore() {
  for (LeafGrad& g : grads_) g.leaf->need_meta().grad = std::move(g.before);
  grads_.clear();
}

void FunctionRecorder::at(const Origin& origin) {
  at_leaf_ = !origin.record;
  origin_index_ =
      origin.record ? graph_.add_origin({origin.record->op->name, origin.ordinal, origin.part}) : -1;
}

// Numbers of the forward that a rule reads are symbols here, too.
const void* FunctionRecorder::attrs_of(const Record& record) {
  if (!forward_ || !record.op->visit_attrs) return Emitter::attrs_of(record);
  attrs_.resize(record.op->attrs_size);
  std::memcpy(attrs_.data(), record.attrs(), record.op->attrs_size);
  ir::for_each_field(*record.op, attrs_.data(), [&](auto, Scalar& number) {
    if (!number.is_symbolic()) return;
    const auto [it, fresh] = forward_numbers_.try_emplace(number.id(), 0);
    if (fresh) it->second = graph_.symbols.add_symbol(number.number());
    number = Scalar::symbol(it->second, number.number());
  });
  return attrs_.data();
}

// ---- memory --------------------------------------------------------------------------------------------------------------------------

Tensor FunctionRecorder::argument(const Tensor& like) {
  const auto number = static_cast<int>(inputs_.size());
  Tensor stand_in = make(like.impl().type(), graph_.add_tensor_input(like.impl().type()));
  TensorImpl& cell = stand_in.impl();
  std::copy_n(like.impl().strides(), cell.rank(), cell.mutable_strides());
  cell.set_storage_offset(like.impl().storage_offset());
  cell.set_storage(no_memory(like.impl().storage()->nbytes()));
  cell.requires_grad = like.impl().requires_grad;
  inputs_.push_back({.argument = number});
  Root& root = new_root(cell, cell.value_id);
  root.cell = present_geometry(cell);
  root.input = number;
  arguments_.push_back(stand_in);
  return stand_in;
}

Tensor FunctionRecorder::cotangent(const TensorType& type, int result) {
  inputs_.push_back({.argument = result});
  return computed(type, graph_.add_tensor_input(type));
}

FunctionRecorder::Root& FunctionRecorder::new_root(TensorImpl& cell, ir::ValueId value) {
  Root& root = roots_[cell.storage().get()];
  root.storage = cell.storage();
  root.value = value;
  root_order_.push_back(&root);
  return root;
}

// A cell that lies as `cell` does, and belongs to nobody.
RefPtr<TensorImpl> FunctionRecorder::present_geometry(const TensorImpl& cell) const {
  RefPtr<TensorImpl> copy = TensorImpl::make();
  copy->alias(cell);
  copy->set_storage({});
  return copy;
}

FunctionRecorder::Root& FunctionRecorder::capture(TensorImpl& cell) {
  TensorImpl& base = cell.base ? *cell.base : cell;
  if (base.graph) throw Error(Category::bad_argument, "a value of another recorded graph was used");
  if (base.grad_fn)
    throw Error(Category::unsupported,
                fmt::format("a recorded function uses a tensor from outside, {}, that has a history. Hint: "
                            "make it an argument, or detach it",
                            to_string(base.type())));
  Root& root = new_root(base, graph_.add_tensor_input(base.type()));
  root.cell = present_geometry(base);
  root.input = static_cast<int32_t>(inputs_.size());
  inputs_.push_back({.captured = Tensor(RefPtr<TensorImpl>(&base))});
  return root;
}

FunctionRecorder::Root& FunctionRecorder::root_of(TensorImpl& cell) {
  const auto it = roots_.find(cell.storage().get());
  if (it == roots_.end()) return capture(cell);
  Root& root = it->second;
  if (!root.cell) {  // a computed value: row-major
    root.cell = make(graph_.type(root.value), root.value).ref();
    contiguous_strides(root.cell->shape(), root.cell->mutable_strides());
  }
  return root;
}

// The op, as_strided or as_strided_scatter, that relates a cell to its root.
ir::ValueId FunctionRecorder::relate(const OpInfo& op, const Root& root, const TensorImpl& cell,
                                     const Tensor& value) {
  if (root.cell->dtype() != cell.dtype() || (root.is_written && !root.cell->is_contiguous()) ||
      !lies_within(cell, *root.cell))
    throw Error(Category::unsupported,
                fmt::format("a recorded function writes to memory that is seen as {} and as {}. Hint: make "
                            "them row-major tensors of their own",
                            to_string(root.cell->type()), to_string(cell.type())));
  ops::Geometry geometry = ops::geometry_of(cell, *root.cell);
  Tensor from = make(root.cell->type(), root.value), result;
  std::copy_n(root.cell->strides(), root.cell->rank(), from.impl().mutable_strides());
  from.impl().set_storage(no_memory((last_element(*root.cell) - root.cell->storage_offset() + 1) *
                                    static_cast<int64_t>(element_size(root.cell->dtype()))));
  new_root(from.impl(), root.value);
  TensorImpl* operands[] = {from.get(), value.get()};
  emit({&op, {operands, value.defined() ? size_t{2} : size_t{1}}, &geometry, {}, 1}, &result);
  return result.impl().value_id;
}

ir::ValueId FunctionRecorder::value_of(const Tensor& tensor) {
  if (!tensor.defined()) return ir::kNoValue;
  TensorImpl& cell = tensor.impl();
  if (cell.graph == id_ && !has_written_) return cell.value_id;
  if (forward_ && cell.graph == forward_->id_) {
    const int32_t index = forward_->saved_index(tensor);
    const auto [it, fresh] = saved_inputs_.try_emplace(index, ir::kNoValue);
    if (!fresh) return it->second;
    inputs_.push_back({.saved = index});
    return it->second = graph_.add_tensor_input(cell.type());
  }
  Root& root = root_of(cell);
  if (!root.is_written && cell.graph == id_) return cell.value_id;
  if (same_geometry(cell, *root.cell)) return root.value;
  for (const auto& [view, value] : root.views)
    if (same_geometry(cell, *view)) return value;
  const ir::ValueId value = relate(ops::info<ops::AsStrided>, root, cell, {});
  root.views.emplace_back(present_geometry(cell), value);
  return value;
}

// Of a forward: which of the saved values that of `tensor` is. What a later backward saves, the first one did.
int32_t FunctionRecorder::saved_index(const Tensor& tensor) {
  const ir::ValueId value = value_of(tensor);
  const auto [it, fresh] = saved_.try_emplace(value, static_cast<int32_t>(saved_.size()));
  RG_ASSERT(!(fresh && is_finished_));
  return it->second;
}

std::vector<std::pair<Tensor, int32_t>> FunctionRecorder::captured_leaves() const {
  std::vector<std::pair<Tensor, int32_t>> leaves;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].captured.defined() && inputs_[i].captured.requires_grad())
      leaves.emplace_back(inputs_[i].captured, static_cast<int32_t>(i));
  return leaves;
}

Tensor FunctionRecorder::present_value(TensorImpl& self) {
  Tensor value = make(self.type(), value_of(Tensor(RefPtr<TensorImpl>(&self))));
  TensorImpl& cell = value.impl();
  std::copy_n(self.strides(), self.rank(), cell.mutable_strides());
  cell.set_storage_offset(self.storage_offset());
  cell.set_storage(no_memory(self.storage()->nbytes()));
  new_root(cell, cell.value_id).cell = present_geometry(cell);
  return value;
}

void FunctionRecorder::write(TensorImpl& self, const Tensor& result, SourceLocation where) {
  const ir::ValueId value = value_of(result);
  Root& root = root_of(self);
  if (!self.graph && GradMode::is_enabled() && result.requires_grad())
    fail(Category::unsupported, "write",
         "a recorded function gives a tensor from outside a history. Hint: use no_grad, or detach", where);
  root.value = same_geometry(self, *root.cell)
                   ? value
                   : relate(ops::info<ops::AsStridedScatter>, root, self, computed(self.type(), value));
  root.is_written = has_written_ = true;
  root.views.clear();
  self.storage()->bump_version(where);
}

// A row-major cell for a value.
Tensor FunctionRecorder::computed(const TensorType& type, ir::ValueId value) {
  Tensor made = make(type, value);
  lay_out(made.impl());
  return made;
}

void FunctionRecorder::lay_out(TensorImpl& cell) {
  contiguous_strides(cell.shape(), cell.mutable_strides());
  cell.set_storage(no_memory(cell.numel().raw() * static_cast<int64_t>(element_size(cell.dtype()))));
  new_root(cell, cell.value_id);
}

// ---- calls ---------------------------------------------------------------------------------------------------------------------------

void FunctionRecorder::emit(const Call& call, Tensor* results) {
  emit_call(call, results);
  no_grad_.resize(graph_.nodes().size(), !GradMode::is_enabled());
}

void FunctionRecorder::emit_call(const Call& call, Tensor* results) {
  if (call.op->is(Trait::bookkeeping)) return emit_bookkeeping(call, results);
  if (call.op->run_on_host) return call.op->run_on_host(call, results);  // a function that has run: its results
  infer(call, results);
  if (call.op->is(Trait::view)) {
    TensorImpl& cell = results[0].impl();
    make_view(call, *call.operands[0], cell);  // first: it fails for a layout that does not allow the view
    append_node(call, results);
    if (!has_written_) return;
    if (Root& root = root_of(cell); root.is_written)
      root.views.emplace_back(present_geometry(cell), cell.value_id);
    return;
  }
  append_node(call, results);
  for (int i = 0; i < call.outputs; ++i) lay_out(results[i].impl());
}

void FunctionRecorder::live_numbers(std::span<Scalar> out, const ReadNumbers& read) {
  read(out);
  numbers_.push_back({read, graph_.symbols.size(), static_cast<int>(out.size())});
  for (Scalar& s : out) s = Scalar::symbol(graph_.symbols.add_symbol(s.number()), s.number());
}

// Unpacks, functions and what retain_grad keeps are code that runs on recorded values, as it would on others.
void FunctionRecorder::emit_bookkeeping(const Call& call, Tensor* results) {
  if (call.op == &ops::hook) return emit_hook(call, results);
  if (call.op == &ops::accumulate_grad)
    return accumulate(*call.attrs_as<AccumulateGradAttrs>().leaf, Tensor(RefPtr<TensorImpl>(call.operands[0])));
  call.op->run_on_host(call, results);
}

void FunctionRecorder::emit_hook(const Call& call, Tensor* results) {
  const HookAttrs& attrs = call.attrs_as<HookAttrs>();
  if (forward_ && at_leaf_) {  // leaves are outside: their hooks run where the gradients go
    for (int i = 0; i < call.outputs; ++i) results[i] = Tensor(RefPtr<TensorImpl>(call.operands[static_cast<size_t>(i)]));
    return;
  }
  if (attrs.hook->kind == Hook::Kind::post_accumulate)
    throw Error(Category::unsupported,
                "a post-accumulate hook cannot be recorded in a function. Hint: do its work in the function");
  if (attrs.hook->traceable)
    return run_hook(attrs, call.operands, {results, static_cast<size_t>(call.outputs)});
  std::vector<TensorType> types;
  for (int i = 0; i < call.outputs; ++i)
    types.push_back(call.operands[static_cast<size_t>(i)] ? call.operands[static_cast<size_t>(i)]->type()
                                                          : TensorType{});
  Call plain = call;
  plain.attrs = nullptr;
  ir::Node& node = append(plain, types);
  node.handle = graph_.add_handle(ir::Input::Kind::hook, {});
  inputs_.push_back({.hook = RefPtr<Hook>(attrs.hook), .leaf = RefPtr<TensorImpl>(attrs.leaf)});
  for (int i = 0; i < call.outputs; ++i) {
    TensorImpl* operand = call.operands[static_cast<size_t>(i)];
    if (operand) results[i] = computed(operand->type(), node.first_result + i);
  }
}

// ---- gradients of leaves -------------------------------------------------------------------------------------------------------------

FunctionRecorder::LeafGrad& FunctionRecorder::leaf_grad(TensorImpl& leaf, bool is_dropped) {
  const auto it = std::ranges::find(grads_, &leaf, [](const LeafGrad& g) { return g.leaf.get(); });
  if (it != grads_.end()) return *it;
  grads_.push_back({RefPtr<TensorImpl>(&leaf), leaf.need_meta().grad, is_dropped});
  return grads_.back();
}

void FunctionRecorder::grad_is_replaced(TensorImpl& leaf) { leaf_grad(leaf, true); }

// From now on the gradient that a leaf has at the beginning is an input, whichever tensor that is in a run.
void FunctionRecorder::grad_is_read(TensorImpl& leaf) {
  if (leaf.graph) return;
  const LeafGrad& g = leaf_grad(leaf, false);
  TensorImpl* grad = leaf.need_meta().grad.get();
  if (!grad || grad->graph || grad != g.before.get() || roots_.contains(grad->storage().get())) return;
  inputs_[static_cast<size_t>(capture(*grad).input)].grad_of = RefPtr<TensorImpl>(&leaf);
}

// The value that has arrived becomes .grad, in a cell of its own; whether it needs memory of its own shows in the end.
void FunctionRecorder::accumulate(TensorImpl& leaf, const Tensor& grad) {
  if (!(grad.impl().type() == leaf.type()))
    fail(Category::cotangent_mismatch, "accumulate_grad",
         fmt::format("a gradient of type {} for a leaf of type {}", to_string(grad.impl().type()),
                     to_string(leaf.type())));
  leaf_grad(leaf, false);
  grad_is_read(leaf);
  Tensor& sum = leaf.need_meta().grad;
  if (!sum.defined())
    sum = GradMode::is_enabled() ? clone(grad) : present_value(contiguous(grad).impl());
  else if (GradMode::is_enabled())
    sum = add(sum, grad);
  else
    sum.add_(grad);
}

// ---- the end -------------------------------------------------------------------------------------------------------------------------

// Values that have no memory of their own: inputs, views, what hooks gave.
std::vector<bool> FunctionRecorder::borrowed_values() const {
  std::vector<bool> borrowed(static_cast<size_t>(graph_.value_count()));
  for (const ir::Input& input : graph_.inputs())
    if (input.value != ir::kNoValue) borrowed[static_cast<size_t>(input.value)] = true;
  for (const ir::Node& node : graph_.nodes())
    if (node.op->is(Trait::view) || node.handle >= 0)
      for (int i = 0; i < node.results; ++i) borrowed[static_cast<size_t>(node.first_result + i)] = true;
  return borrowed;
}

int32_t FunctionRecorder::output(ir::ValueId value, bool must_own) {
  if (value != ir::kNoValue && must_own) {
    const bool is_known = static_cast<size_t>(value) < borrowed_.size();
    if ((is_known && borrowed_[static_cast<size_t>(value)]) || std::ranges::count(outputs_, value))
      value = clone(computed(graph_.type(value), value)).impl().value_id;
  }
  outputs_.push_back(value);
  return static_cast<int32_t>(outputs_.size()) - 1;
}

void FunctionRecorder::finish(const Tensors& results, RecordedFunction& out) {
  NoGradGuard no_grad;
  Emitter::Scope scope(*this);
  borrowed_ = borrowed_values();
  out.results = results.size();
  for (const Tensor& r : results) output(value_of(r), has_written_);
  for (const LeafGrad& g : grads_) {
    const Tensor& grad = g.leaf->need_meta().grad;
    const auto argument = std::ranges::find(arguments_, g.leaf.get(), &Tensor::get);
    RecordedFunction::Grad end{g.leaf, -1, g.is_dropped_first, g.before.defined(), RecordedFunction::Grad::kKept};
    if (argument != arguments_.end()) end.argument = static_cast<int>(argument - arguments_.begin());
    if (!grad.defined())
      end.output = RecordedFunction::Grad::kNone;
    else if (grad.get() != g.before.get())
      end.output = output(value_of(grad), true);
    out.grads.push_back(std::move(end));
  }
  for (size_t i = 0; i < root_order_.size(); ++i) {
    Root& root = *root_order_[i];
    if (!root.is_written || root.input < 0) continue;
    out.writes.push_back({root.input, output(root.value, true)});
  }
  out.saved.resize(saved_.size());
  for (const auto& [value, index] : saved_) out.saved[static_cast<size_t>(index)] = output(value, has_written_);
  restore();
  graph_.set_outputs(std::move(outputs_));
  for (RecordedFunction::Input& input : inputs_)
    if (input.grad_of) input.captured.reset();
  out.forward_numbers.assign(forward_numbers_.begin(), forward_numbers_.end());
  out.inputs = std::move(inputs_);
  out.numbers = std::move(numbers_);
  no_grad_.resize(graph_.nodes().size(), true);
  out.no_grad = std::move(no_grad_);
  is_finished_ = true;
  end();
}

}  // namespace retrograd
