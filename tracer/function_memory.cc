// The memory of a recorded function: stand-ins of arguments, roots, and what cells hold. See tracer/function_recorder.h; start reading at
// value_of and write.
//
// A root is found by the storage that a cell has. The stand-ins of arguments that share memory share a storage, hence a root, which begins as
// the base among them, or as the first of them. As long as nothing is written there each argument has the value of its own input.
#include <algorithm>

#include <fmt/format.h>

#include "ops/shape_ops.h"
#include "ops/views.h"
#include "tracer/function_recorder.h"

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

int64_t width(const TensorImpl& x) { return static_cast<int64_t>(element_size(x.dtype())); }

}  // namespace

// ---- arguments -------------------------------------------------------------------------------------------------------------------------

Tensors FunctionRecorder::arguments(const Tensors& given) {
  for (size_t i = 0; i < given.size(); ++i)
    if (!given[i].impl().base) stand_in(given[i].impl(), static_cast<int>(i), -1);
  for (size_t i = 0; i < given.size(); ++i) {
    TensorImpl& cell = given[i].impl();
    if (!cell.base) continue;
    const Tensor base = stand_in(*cell.base, -1, static_cast<int>(i));
    stand_in(cell, static_cast<int>(i), -1).impl().base = base.ref();
  }
  Tensors made;
  for (const Tensor& g : given)
    made.push_back(std::ranges::find(stand_ins_, g.get(), &StandIn::stands_for)->tensor);
  return made;
}

Tensor FunctionRecorder::stand_in(TensorImpl& like, int argument, int base_of) {
  for (const StandIn& s : stand_ins_)
    if (s.stands_for == &like) return s.tensor;
  const auto number = static_cast<int32_t>(argument >= 0 ? inputs_.size() : -1);
  Tensor made = make(like.type(), argument >= 0 ? graph_.add_tensor_input(like.type()) : ir::kNoValue);
  TensorImpl& cell = made.impl();
  std::copy_n(like.strides(), cell.rank(), cell.mutable_strides());
  cell.set_storage_offset(like.storage_offset());
  cell.is_multi_output_view = like.is_multi_output_view;
  cell.is_no_grad_view = like.is_no_grad_view;
  RefPtr<Storage>& memory = argument_memory_[like.storage().get()];
  const bool is_first = !memory;
  if (is_first) memory = no_memory(like.storage()->nbytes());
  cell.set_storage(memory);
  if (argument >= 0) inputs_.push_back({.argument = argument});
  Root& root = is_first ? new_root(cell, cell.value_id) : roots_.at(memory.get());
  if (is_first) {
    root.cell = root.as_input = present_geometry(cell);
    root.input = number;
    root.base_of = base_of;
    root.outside = like.storage().get();
  }
  if (argument >= 0) ++root.arguments;
  if (argument >= 0 && root.seen < 0) {
    root.seen = number;
    root.seen_offset = cell.storage_offset();
  }
  stand_ins_.push_back({&like, made, {}, argument, base_of, {}});
  link_stand_in(stand_ins_.back());
  return made;
}

// The place in the recorded tape. A view whose base alone has a gradient has none of its own, though it counts as having one.
void FunctionRecorder::link_stand_in(StandIn& made) {
  const TensorImpl& like = *made.stands_for;
  TensorImpl& cell = made.tensor.impl();
  cell.requires_grad = like.requires_grad;
  if (!like.requires_grad && !(like.base && like.base->requires_grad)) return;
  if (like.requires_grad && like.is_leaf()) {
    made.leaf = made.tensor;
    if (!like.meta || !like.meta->has_hooks()) return;
    AutogradMeta& meta = cell.need_meta();
    meta.tensor_hooks = like.meta->tensor_hooks;
    meta.pre_hooks = like.meta->pre_hooks;
    meta.post_hooks = like.meta->post_hooks;
    meta.post_accumulate_hooks = like.meta->post_accumulate_hooks;
    return;
  }
  made.leaf = make(like.type(), ir::kNoValue);
  made.leaf.impl().requires_grad = true;
  if (!like.requires_grad) return;
  TensorImpl* operand = made.leaf.get();
  cell.grad_fn = Record::make({&ops::info<ops::Alias>, {&operand, 1}, nullptr, {}, 1}, &made.tensor, 1);
  cell.output_nr = 0;
  made.history = cell.grad_fn;
}

int32_t FunctionRecorder::input_of(const Tensor& stand_in) {
  const StandIn& s =
      *std::ranges::find(stand_ins_, stand_in.get(), [](const StandIn& x) { return x.tensor.get(); });
  if (s.argument >= 0)
    return static_cast<int32_t>(std::ranges::find(inputs_, s.argument, &RecordedFunction::Input::argument) -
                                inputs_.begin());
  Root& root = root_of(stand_in.impl());
  need_input(root);
  return root.input;
}

void FunctionRecorder::need_input(Root& root) {
  if (root.input >= 0 || root.base_of < 0) return;
  root.input = static_cast<int32_t>(inputs_.size());
  root.value = graph_.add_tensor_input(root.as_input->type());
  inputs_.push_back({.base_of = root.base_of});
}

Tensor FunctionRecorder::cotangent(const TensorType& type, int result) {
  inputs_.push_back({.argument = result});
  return computed(type, graph_.add_tensor_input(type));
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

FunctionRecorder::Root& FunctionRecorder::capture(TensorImpl& cell) {
  TensorImpl& base = cell.base ? *cell.base : cell;
  if (base.graph) throw Error(Category::bad_argument, "a value of another recorded graph was used");
  if (base.grad_fn)
    throw Error(Category::unsupported,
                fmt::format("a recorded function uses a tensor from outside, {}, that has a history. Hint: "
                            "make it an argument, or detach it",
                            to_string(base.type())));
  Root& root = new_root(base, graph_.add_tensor_input(base.type()));
  root.cell = root.as_input = present_geometry(base);
  root.input = root.seen = static_cast<int32_t>(inputs_.size());
  root.seen_offset = base.storage_offset();
  root.outside = base.storage().get();
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

// Written memory that two inputs would be bound to, one of which is a tensor from outside.
void FunctionRecorder::check_alone(const Root& root) const {
  for (const Root* other : root_order_)
    if (other != &root && other->outside && other->outside == root.outside)
      throw Error(
          Category::unsupported,
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
  from.impl().set_storage(no_memory(bytes));
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
    throw Error(Category::unsupported,
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
  if (!tensor.defined()) return ir::kNoValue;
  TensorImpl& cell = tensor.impl();
  const bool is_own = cell.graph == id_ && cell.value_id != ir::kNoValue;
  if (is_own && (!has_written_ || !cell.has_layout())) return cell.value_id;
  if (forward_ && cell.graph == forward_->id_) {
    const int32_t index = forward_->saved_index(tensor);
    if (running_) users_.emplace_back(index, running_);
    const auto [it, fresh] = saved_inputs_.try_emplace(index, ir::kNoValue);
    if (!fresh) return it->second;
    inputs_.push_back({.saved = index});
    return it->second = graph_.add_tensor_input(cell.type());
  }
  Root& root = root_of(cell);
  if (!root.is_written && is_own) return cell.value_id;
  need_input(root);
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
  if (!fresh) return it->second;
  const Root& root = root_of(tensor.impl());
  saved_places_.push_back(root.is_written && root.seen >= 0 ? place(tensor) : RecordedFunction::Place());
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

RecordedFunction::Place FunctionRecorder::place(const Tensor& tensor) {
  RecordedFunction::Place p;
  if (!tensor.defined()) return p;
  TensorImpl& cell = tensor.impl();
  Root& root = root_of(cell);
  p.type = cell.type();
  for (int i = 0; i < cell.rank(); ++i) p.strides.push_back(cell.strides()[i]);
  p.offset = cell.storage_offset() - root.seen_offset;
  p.input = root.seen;
  shares_memory_ |= root.arguments > 1;
  if (root.seen >= 0) return p;
  if (root.output < 0) root.output = output(root.value, true);
  p.output = root.output;
  return p;
}

}  // namespace retrograd
