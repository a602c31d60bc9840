// The memory of a recorded function: roots, and what cells hold. See tracer/function_recorder.h; start reading at value_of and write.
//
// A root is found by the storage that a cell has. A read of a cell whose geometry is the root's gives the root's value, another one a view of
// it (as_strided); a write replaces the value, or the part of it that the cell shows (as_strided_scatter). Values without a layout, which
// opaque hooks give, have no root: nobody writes to them. Inputs are made in tracer/function_inputs.cc.
#include <algorithm>

#include <fmt/format.h>

#include "ops/shape_ops.h"
#include "ops/views.h"
#include "tracer/function_recorder.h"

namespace retrograd {
namespace {

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

int64_t width(const TensorImpl& x) { return static_cast<int64_t>(element_size(x.dtype())); }

}  // namespace

RecordedFunction::Layout RecordedFunction::Layout::of(const TensorImpl& x, int64_t begin) {
  Layout layout{x.type(), {}, x.storage_offset() - begin};
  for (int i = 0; i < x.rank(); ++i) layout.strides.push_back(x.strides()[i]);
  return layout;
}

Tensor RecordedFunction::Layout::in(const TensorImpl& memory) const {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(type.dtype, type.device, type.shape);
  std::ranges::copy(strides, cell->mutable_strides());
  cell->set_storage(memory.storage());
  cell->set_storage_offset(memory.storage_offset() + offset);
  return Tensor(std::move(cell));
}

bool RecordedFunction::Layout::is(const TensorImpl& x, const TensorImpl& memory) const {
  return x.storage() == memory.storage() && x.storage_offset() == memory.storage_offset() + offset &&
         x.type() == type && std::ranges::equal(strides, std::span(x.strides(), strides.size()));
}

// ---- roots -----------------------------------------------------------------------------------------------------------------------------

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

// Written memory that two inputs would be bound to, one of which is a tensor from outside.
void FunctionRecorder::check_alone(const Root& root) const {
  if (root.outside && roots_outside_.at(root.outside) > 1)
    refuse(Category::unsupported,
           "a recorded function writes to an argument that it also uses as a tensor from outside. Hint: use "
           "the argument only");
}

// A view, or a copy with a part replaced, of a value that lies like `cell` in memory of so many bytes.
ir::ValueId FunctionRecorder::emit_geometry(const OpInfo& op, const TensorImpl& cell, ir::ValueId value,
                                            const TensorImpl& part, const Tensor& with, int64_t bytes) {
  ops::Geometry geometry = ops::geometry_of(part, cell);
  Tensor from = make(cell.type(), value), result;
  std::copy_n(cell.strides(), cell.rank(), from.impl().mutable_strides());
  from.impl().set_storage_offset(cell.storage_offset());
  from.impl().set_storage(memory_without_data(bytes));
  new_root(from.impl(), value);
  TensorImpl* operands[] = {from.get(), with.get()};
  emit({&op, {operands, with.defined() ? size_t{2} : size_t{1}}, &geometry, {}, 1}, &result);
  no_grad_.back() = false;  // whoever asks for it
  return result.impl().value_id;
}

// The op, as_strided or as_strided_scatter, that relates a cell to its root.
ir::ValueId FunctionRecorder::relate(const OpInfo& op, Root& root, const TensorImpl& cell,
                                     const Tensor& with) {
  if (root.cell->dtype() != cell.dtype())
    refuse(Category::unsupported,
           fmt::format("a recorded function writes to memory that is seen as {} and as {}",
                       to_string(root.cell->type()), to_string(cell.type())));
  if ((root.is_written || with.defined()) && root.input >= 0 &&
      (!root.cell->is_contiguous() || !lies_within(cell, *root.cell)))
    flatten(root);
  const RefPtr<TensorImpl> whole = root.cell;
  const int64_t bytes = root.input >= 0 ? root.storage->nbytes() : (last_element(*whole) + 1) * width(*whole);
  return emit_geometry(op, *whole, root.value, cell, with, bytes);
}

// From now on the root is all of its memory.
void FunctionRecorder::flatten(Root& root) {
  if (root.is_flat) return;
  const RefPtr<TensorImpl> before = root.cell;
  const ir::ValueId value = root.value;
  root.cell =
      make({before->dtype(), before->device(), {root.storage->nbytes() / width(*before)}}, ir::kNoValue)
          .ref();
  contiguous_strides(root.cell->shape(), root.cell->mutable_strides());
  const TensorImpl& input = *root.as_input;
  root.value =
      emit_geometry(ops::info<ops::AsStrided>, input, graph_.inputs()[static_cast<size_t>(root.input)].value,
                    *root.cell, {}, root.storage->nbytes());
  root.is_flat = true;
  if (root.is_written)
    root.value = relate(ops::info<ops::AsStridedScatter>, root, *before, computed(before->type(), value));
}

// ---- values ----------------------------------------------------------------------------------------------------------------------------

ir::ValueId FunctionRecorder::value_of(const Tensor& tensor) {
  return read(tensor, tensor.defined() && tensor.requires_grad());
}

// `has_history`: whoever reads it has a gradient for it.
ir::ValueId FunctionRecorder::read(const Tensor& tensor, bool has_history) {
  if (!tensor.defined()) return ir::kNoValue;
  TensorImpl& cell = tensor.impl();
  const bool is_own = cell.graph == id_ && cell.value_id != ir::kNoValue;
  if (is_own && (!has_written_ || !cell.has_layout())) return cell.value_id;
  if (forward_ && (cell.graph == forward_->id_ || forward_->is_gradient(cell))) {
    const int32_t index = forward_->saved_index(tensor, position_.running);
    if (position_.running) users_.emplace_back(index, position_.running);
    const auto [it, fresh] = saved_inputs_.try_emplace(index, ir::kNoValue);
    if (!fresh) return it->second;
    inputs_.push_back({.saved = index});
    return it->second = graph_.add_tensor_input(cell.type());
  }
  Root& root = root_of(cell);
  if (!root.is_written && is_own) return cell.value_id;
  need_input(root);
  if (root.is_written && GradMode::is_enabled()) note_read(root, cell);
  const ir::ValueId value = shown(root, cell);
  return root.history && !has_history && is_floating(cell.dtype()) ? detached(value) : value;
}

// What a cell shows of the present value of its root.
ir::ValueId FunctionRecorder::shown(Root& root, const TensorImpl& cell) {
  if (same_geometry(cell, *root.cell)) return root.value;
  for (const auto& [view, value] : root.views)
    if (same_geometry(cell, *view)) return value;
  const ir::ValueId value = relate(ops::info<ops::AsStrided>, root, cell, {});
  root.views.emplace_back(present_geometry(cell), value);
  return value;
}

// The value without the history that it has in a replay of the graph.
ir::ValueId FunctionRecorder::detached(ir::ValueId value) {
  if (const auto known = detached_.find(value); known != detached_.end()) return known->second;
  const Tensor from = computed(graph_.type(value), value);
  TensorImpl* operand = from.get();
  Tensor result;
  emit({&ops::info<ops::Detach>, {&operand, 1}, nullptr, {}, 1}, &result);
  return detached_[value] = result.impl().value_id;
}

// The graph has one value for all cells that show memory. Where one of them has another history, a replay of the graph would be wrong.
void FunctionRecorder::note_read(const Root& root, const TensorImpl& cell) {
  if (!is_floating(cell.dtype())) return;
  const TensorImpl* history = root.history.get();
  if (!cell.requires_grad && !history) without_history_.push_back(root.value);
  if (!cell.requires_grad) return;
  const TensorImpl* base = cell.base ? cell.base.get() : &cell;
  has_two_histories_ |= !history || (history != base && !(history->grad_fn == cell.grad_fn));
}

// Whether one of the values that were read without a gradient has one in the graph.
bool FunctionRecorder::have_histories() const {
  std::vector<bool> has(static_cast<size_t>(graph_.value_count()));
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].captured.defined() && graph_.inputs()[i].value != ir::kNoValue)
      has[static_cast<size_t>(graph_.inputs()[i].value)] = inputs_[i].captured.requires_grad();
  for (const StandIn& s : stand_ins_)
    if (s.leaf.defined() && s.tensor.impl().value_id != ir::kNoValue)
      has[static_cast<size_t>(s.tensor.impl().value_id)] = true;
  for (size_t n = 0; n < graph_.nodes().size(); ++n) {
    const ir::Node& node = graph_.nodes()[n];
    const bool goes_on =
        node.op->vjp && !no_grad_[n] && std::ranges::any_of(graph_.operands(node), [&](ir::ValueId v) {
          return v != ir::kNoValue && has[static_cast<size_t>(v)];
        });
    for (int i = 0; i < node.results; ++i) has[static_cast<size_t>(node.first_result + i)] = goes_on;
  }
  return std::ranges::any_of(without_history_, [&](ir::ValueId v) { return has[static_cast<size_t>(v)]; });
}

// Memory of the gradient that a leaf has had at the beginning.
bool FunctionRecorder::is_gradient(const TensorImpl& cell) const {
  const auto it = roots_.find(cell.storage().get());
  return it != roots_.end() && it->second.is_gradient;
}

// Of a forward: which of the saved values that of `tensor` is. What a later backward saves, the first one did.
int32_t FunctionRecorder::saved_index(const Tensor& tensor, const Record* user) {
  bool has_history = tensor.requires_grad();
  for (int i = 0; user && i < user->slots; ++i)
    if (const Slot& slot = user->slot(i); slot.value() == tensor.get())
      has_history = slot.is_result || user->edge(slot.index);
  const ir::ValueId value = read(tensor, has_history);
  const auto [it, fresh] = saved_.try_emplace(value, static_cast<int32_t>(saved_.size()));
  RG_ASSERT(!(fresh && is_finished_));
  if (!fresh) return it->second;
  const Root* const root = tensor.impl().has_layout() ? &root_of(tensor.impl()) : nullptr;
  const bool lies_in_input = root && root->is_written && root->seen >= 0;
  saved_places_.push_back(lies_in_input ? place(tensor) : RecordedFunction::Place());
  return it->second;
}

Tensor FunctionRecorder::present_value(TensorImpl& self) {
  Tensor value = make(self.type(), value_of(Tensor(RefPtr<TensorImpl>(&self))));
  TensorImpl& cell = value.impl();
  std::copy_n(self.strides(), self.rank(), cell.mutable_strides());
  cell.set_storage_offset(self.storage_offset());
  cell.set_storage(memory_without_data(self.storage()->nbytes()));
  new_root(cell, cell.value_id).cell = present_geometry(cell);
  return value;
}

void FunctionRecorder::write(TensorImpl& self, const Tensor& result, SourceLocation where) {
  const Storage* const memory = self.storage().get();
  if (std::ranges::any_of(shown_by_opaque_,
                          [&](const auto& shown) { return shown.first == memory || shown.second == memory; }))
    cannot_record("write",
                  "the tensor lies in memory that a result of an opaque function shares with its argument",
                  where);
  const ir::ValueId value = value_of(result);
  Root& root = root_of(self);
  if (!self.graph && GradMode::is_enabled() && result.requires_grad()) {
    for (TensorImpl* cell : {&self, self.base.get()}) {  // it has that already
      if (!cell) continue;
      cell->grad_fn.reset();
      cell->requires_grad = false;
    }
    fail(Category::unsupported, "write",
         "a recorded function gives a tensor from outside a history. Hint: use no_grad, or detach", where);
  }
  need_input(root);
  if (same_geometry(self, *root.cell))
    root.value = value;
  else
    root.value = relate(ops::info<ops::AsStridedScatter>, root, self, computed(self.type(), value));
  root.is_written = has_written_ = true;
  root.is_outside = false;
  root.history.reset();
  if (GradMode::is_enabled() && result.requires_grad())
    root.history = self.base ? self.base : RefPtr<TensorImpl>(&self);
  root.views.clear();
  if (!self.graph) outside_writes_.insert(self.storage().get());
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
  cell.set_storage(
      memory_without_data(cell.numel().raw() * static_cast<int64_t>(element_size(cell.dtype()))));
  new_root(cell, cell.value_id);
}

RecordedFunction::Place FunctionRecorder::place(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  Root& root = root_of(tensor.impl());
  RecordedFunction::Place p{RecordedFunction::Layout::of(tensor.impl(), root.seen_offset)};
  p.input = root.seen;
  shares_memory_ |= root.arguments > 1;
  if (root.seen >= 0) return p;
  p.output = output_of(root);
  return p;
}

// A gradient in computed memory lies there in any way; one in that of an input is copied.
RecordedFunction::Place FunctionRecorder::place_of_grad(const Tensor& grad) {
  const TensorImpl& cell = grad.impl();
  const Root& root = root_of(grad.impl());
  if (root.seen < 0 && root.cell->is_contiguous() && root.cell->dtype() == cell.dtype()) return place(grad);
  const ir::ValueId value = value_of(grad);
  const Tensor row = computed(cell.type(), value);
  RecordedFunction::Place p{RecordedFunction::Layout::of(row.impl(), 0)};
  p.output = output(value, true);
  return p;
}

// Where it lies otherwise than all of a computed memory, host code is given all of that.
FunctionRecorder::GradMemory FunctionRecorder::memory_of_grad(const Tensor& grad) {
  const ir::ValueId value = value_of(grad);
  const Root& root = root_of(grad.impl());
  if (root.input >= 0 || !root.cell->is_contiguous() || same_geometry(grad.impl(), *root.cell))
    return {value};
  return {root.value, RecordedFunction::Layout::of(grad.impl(), root.cell->storage_offset())};
}

}  // namespace retrograd
