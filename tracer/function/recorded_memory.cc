// See tracer/function/recorded_memory.h.
#include "tracer/function/recorded_memory.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "engine/inplace.h"
#include "ops/shape_ops.h"
#include "ops/views.h"
#include "tracer/function/function_recorder.h"

namespace retrograd::inline v0 {

bool same_geometry(const TensorImpl& a, const TensorImpl& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape()) || !(a.offset() == b.offset())) return false;
  for (int i = 0; i < a.rank(); ++i)
    if (a.shape()[i].raw() != 1 && !(a.stride(i) == b.stride(i))) return false;
  return true;
}

namespace {

// Position of the last element in memory; before the first if there is none.
Dim last_element(const TensorImpl& x) {
  Dim last = x.offset();
  for (int i = 0; i < x.rank(); ++i) {
    if (x.shape()[i].raw() == 0) return -1;
    last += (x.shape()[i] - 1) * x.stride(i);
  }
  return last;
}

bool lies_within(const TensorImpl& view, const TensorImpl& root) {
  return view.offset() >= root.offset() && last_element(view) <= last_element(root);
}

int64_t width(const TensorImpl& x) { return static_cast<int64_t>(element_size(x.dtype())); }

}  // namespace

// ---- roots --------------------------------------------------------------------------------------------------------

Root& RecordedMemory::new_root(TensorImpl& cell, ir::ValueId value) {
  Root& root = roots_[cell.storage().get()];
  root.storage = cell.storage();
  root.value = value;
  order_.push_back(&root);
  return root;
}

Root* RecordedMemory::find(const Storage* storage) {
  const auto it = roots_.find(storage);
  return it == roots_.end() ? nullptr : &it->second;
}
const Root* RecordedMemory::find(const Storage* storage) const {
  const auto it = roots_.find(storage);
  return it == roots_.end() ? nullptr : &it->second;
}

void RecordedMemory::begin_outside(Root& root, const Storage* storage) {
  root.outside = storage;
  ++roots_outside_[storage];
}

RefPtr<TensorImpl> geometry_of_cell(const TensorImpl& cell) {
  RefPtr<TensorImpl> copy = TensorImpl::make();
  copy->alias(cell);
  copy->set_storage({});
  return copy;
}

Root& RecordedMemory::root_of(TensorImpl& cell) {
  Root* const known = find(cell.storage().get());
  if (!known) return of_.inputs().capture(cell);
  Root& root = *known;
  if (!root.cell) {  // a computed value: row-major
    root.cell = of_.make(of_.graph().type(root.value), root.value).ref();
    contiguous_strides(root.cell->shape(), root.cell->mutable_strides());
  }
  return root;
}

// Refuses written memory to which two inputs would be bound, one of them a tensor from outside.
void RecordedMemory::check_alone(const Root& root) const {
  if (root.outside && roots_outside_.at(root.outside) > 1)
    of_.refuse(
        Category::unsupported,
        "a recorded function writes to an argument that it also uses as a tensor from outside. Hint: use "
        "the argument only");
}

// A view, or a copy with a part replaced, of a value with the layout of `cell` in memory of `bytes` bytes.
ir::ValueId RecordedMemory::emit_geometry(const OpInfo& op, const TensorImpl& cell, ir::ValueId value,
                                          const TensorImpl& part, const Tensor& with, int64_t bytes) {
  ops::Geometry geometry = ops::geometry_of(part, cell);
  Tensor from = of_.make(cell.type(), value), result;
  std::copy_n(cell.strides(), cell.rank(), from.impl().mutable_strides());
  from.impl().set_offset(cell.offset());
  from.impl().set_storage(memory_without_data(bytes));
  new_root(from.impl(), value);
  TensorImpl* operands[] = {from.get(), with.get()};
  of_.emit({&op, {operands, with.defined() ? size_t{2} : size_t{1}}, &geometry, {}, 1}, &result);
  of_.note_node(true);  // for every reader
  return result.impl().value_id;
}

// The op, as_strided or as_strided_scatter, that relates a cell to its root.
ir::ValueId RecordedMemory::relate(const OpInfo& op, Root& root, const TensorImpl& cell, const Tensor& with) {
  if (root.cell->dtype() != cell.dtype())
    of_.refuse(Category::unsupported,
               fmt::format("a recorded function writes to memory that is seen as {} and as {}",
                           to_string(root.cell->type()), to_string(cell.type())));
  if ((root.is_written || with.defined()) && root.input >= 0 &&
      (!root.cell->is_contiguous() || !lies_within(cell, *root.cell)))
    flatten(root);
  const RefPtr<TensorImpl> whole = root.cell;
  const int64_t bytes =
      root.input >= 0 ? root.storage->nbytes() : (last_element(*whole) + 1).hint() * width(*whole);
  return emit_geometry(op, *whole, root.value, cell, with, bytes);
}

// From now on the root covers all of its memory.
void RecordedMemory::flatten(Root& root) {
  if (root.is_flat) return;
  const RefPtr<TensorImpl> before = root.cell;
  const ir::ValueId value = root.value;
  root.cell =
      of_.make({before->dtype(), before->device(), {root.storage->nbytes() / width(*before)}}, ir::kNoValue)
          .ref();
  contiguous_strides(root.cell->shape(), root.cell->mutable_strides());
  const TensorImpl& input = *root.as_input;
  root.value = emit_geometry(ops::info<ops::AsStrided>, input,
                             of_.graph().inputs()[static_cast<size_t>(root.input)].value, *root.cell, {},
                             root.storage->nbytes());
  root.is_flat = true;
  if (root.is_written)
    root.value = relate(ops::info<ops::AsStridedScatter>, root, *before, computed(before->type(), value));
}

// ---- values -------------------------------------------------------------------------------------------------------

ir::ValueId RecordedMemory::value_of(TensorImpl& cell, bool has_history) {
  Root& root = root_of(cell);
  if (!root.is_written && cell.graph == of_.id() && cell.value_id != ir::kNoValue) return cell.value_id;
  of_.inputs().need_input(root);
  if (root.is_written && GradMode::is_enabled()) note_read(root, cell);
  const ir::ValueId value = shown(root, cell);
  return root.history && !has_history && is_floating(cell.dtype()) ? detached(value) : value;
}

ir::ValueId RecordedMemory::shown(Root& root, const TensorImpl& cell) {
  if (same_geometry(cell, *root.cell)) return root.value;
  for (const auto& [view, value] : root.views)
    if (same_geometry(cell, *view)) return value;
  const ir::ValueId value = relate(ops::info<ops::AsStrided>, root, cell, {});
  root.views.emplace_back(geometry_of_cell(cell), value);
  return value;
}

// The value without the history that it has in a replay of the graph.
ir::ValueId RecordedMemory::detached(ir::ValueId value) {
  if (const auto known = detached_.find(value); known != detached_.end()) return known->second;
  const Tensor from = computed(of_.graph().type(value), value);
  TensorImpl* operand = from.get();
  Tensor result;
  of_.emit({&ops::info<ops::Detach>, {&operand, 1}, nullptr, {}, 1}, &result);
  return detached_[value] = result.impl().value_id;
}

// The graph has one value for all cells on the same memory. If one of them has another history, a replay of the graph
// would be wrong.
void RecordedMemory::note_read(const Root& root, const TensorImpl& cell) {
  if (!is_floating(cell.dtype())) return;
  const TensorImpl* history = root.history.get();
  if (!cell.requires_grad && !history) without_history_.push_back(root.value);
  if (!cell.requires_grad) return;
  const TensorImpl* base = cell.base ? cell.base.get() : &cell;
  has_two_histories_ |= !history || (history != base && !(history->grad_fn == cell.grad_fn));
}

// Whether one of the values that were read without a gradient has one in the graph.
bool RecordedMemory::has_two_histories() const {
  if (has_two_histories_) return true;
  const ir::Graph& graph = of_.graph();
  std::vector<bool> has = of_.inputs().have_gradient();
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const ir::Node& node = graph.nodes()[n];
    const bool goes_on = node.op->vjp && of_.is_differentiable(n) &&
                         std::ranges::any_of(graph.operands(node), [&](ir::ValueId v) {
                           return v != ir::kNoValue && has[static_cast<size_t>(v)];
                         });
    for (int i = 0; i < node.results; ++i) has[static_cast<size_t>(node.first_result + i)] = goes_on;
  }
  return std::ranges::any_of(without_history_, [&](ir::ValueId v) { return has[static_cast<size_t>(v)]; });
}

bool RecordedMemory::is_gradient(const TensorImpl& cell) const {
  const Root* const root = find(cell.storage().get());
  return root && root->is_gradient;
}

ir::ValueId RecordedMemory::value_outside(const Root& root) const {
  const int32_t input = root.input >= 0 ? root.input : root.seen;
  return input >= 0 ? of_.graph().inputs()[static_cast<size_t>(input)].value : ir::kNoValue;
}

ir::ValueId RecordedMemory::input_value(const Root& root) const {
  return of_.graph().inputs()[static_cast<size_t>(root.input)].value;
}

std::vector<ir::ValueId> RecordedMemory::shown_values() const {
  const ir::Graph& graph = of_.graph();
  std::vector<ir::ValueId> shown(static_cast<size_t>(graph.value_count()));
  std::iota(shown.begin(), shown.end(), 0);
  for (const ir::Node& node : graph.nodes())
    if (node.op->is(Trait::view))
      shown[static_cast<size_t>(node.first_result)] = shown[static_cast<size_t>(graph.operands(node)[0])];
  return shown;
}

std::vector<bool> RecordedMemory::overwritten_inputs() const {
  std::vector<bool> is_overwritten(static_cast<size_t>(of_.graph().value_count()));
  for (const Root* root : order_)
    if (root->is_written && root->input >= 0) is_overwritten[static_cast<size_t>(input_value(*root))] = true;
  for (const StandIn& s : of_.inputs().stand_ins())
    if (const Root& root = *find(s.tensor.impl().storage().get());
        s.argument >= 0 && root.is_written && root.input >= 0)
      is_overwritten[static_cast<size_t>(s.tensor.impl().value_id)] = true;
  return is_overwritten;
}

void RecordedMemory::note_versions() {
  for (const Root* root : order_)
    if (root->outside == root->storage.get()) versions_at_end_[root->outside] = root->storage->version();
}

uint32_t RecordedMemory::version_at_end(const Storage& memory) const {
  const auto it = versions_at_end_.find(&memory);
  return it == versions_at_end_.end() ? memory.version() : it->second;
}

void RecordedMemory::made_of_host_values(const Tensor& copy, const Tensor& values) {
  root_of(copy.impl()).host_values = values;
}

Tensor RecordedMemory::host_values(const TensorImpl& cell) const {
  const Root* const root = cell.graph == of_.id() ? find(cell.storage().get()) : nullptr;
  if (!root || root->is_written || !root->host_values.defined()) return {};
  RefPtr<TensorImpl> shown = geometry_of_cell(cell);
  shown->graph = 0;
  shown->set_storage(root->host_values.impl().storage());
  return Tensor(std::move(shown));
}

// ---- writes -------------------------------------------------------------------------------------------------------

Tensor RecordedMemory::present_value(TensorImpl& self) {
  Tensor value = of_.make(self.type(), of_.value_of(Tensor(RefPtr<TensorImpl>(&self))));
  TensorImpl& cell = value.impl();
  std::copy_n(self.strides(), self.rank(), cell.mutable_strides());
  cell.set_offset(self.offset());
  cell.set_storage(memory_without_data(self.storage()->nbytes()));
  const Root& of = root_of(self);
  const int32_t old_of = !of.is_written || of.is_outside ? of.input : -1;
  Root& own = new_root(cell, cell.value_id);
  own.cell = geometry_of_cell(cell);
  own.old_of = old_of;
  return value;
}

void RecordedMemory::copy_present_values(const Root& overwritten) {
  for (size_t i = 0; i < order_.size(); ++i) {
    Root& root = *order_[i];
    if (root.old_of < 0 || root.old_of != overwritten.input) continue;
    root.old_of = -1;
    if (root.storage->is_unique()) continue;
    const Tensor old = computed(root.cell->type(), root.value);
    TensorImpl* operand = old.get();
    Tensor copy;
    of_.emit({&ops::info<ops::Clone>, {&operand, 1}, nullptr, {}, 1}, &copy);
    root.value = copy.impl().value_id;
    root.is_written = true;  // its cells have the root's value
  }
}

void RecordedMemory::write(TensorImpl& self, const Tensor& result, SourceLocation where) {
  const ir::ValueId value = of_.value_of(result);
  Root& root = root_of(self);
  if (shows_an_element_twice(*root.cell))
    of_.cannot_record("write", "a tensor from outside shows an element of the memory more than once", where);
  if (!self.graph && GradMode::is_enabled() && result.requires_grad()) {
    for (TensorImpl* cell : {&self, self.base.get()}) {  // it has that already
      if (!cell) continue;
      cell->grad_fn.reset();
      cell->requires_grad = false;
    }
    fail(Category::unsupported, "write",
         "a recorded function gives a tensor from outside a history. Hint: use no_grad, or detach", where);
  }
  of_.inputs().need_input(root);
  // A value without the layout of its memory has other bits where a kernel adds in the order of memory.
  if (same_geometry(self, *root.cell) && root.cell->is_contiguous())
    root.value = value;
  else
    root.value = relate(ops::info<ops::AsStridedScatter>, root, self, computed(self.type(), value));
  root.is_written = true;
  of_.note_write();
  root.is_outside = false;
  root.history.reset();
  if (GradMode::is_enabled() && result.requires_grad())
    root.history = self.base ? self.base : RefPtr<TensorImpl>(&self);
  root.views.clear();
  if (!self.graph) outside_writes_.insert(self.storage().get());
  self.storage()->bump_version(where);
}

void RecordedMemory::lies_outside(const Tensor& tensor, ir::ValueId value) {
  Root& root = root_of(tensor.impl());
  if (root.input >= 0) return;  // it was there before
  root.value = value;
  root.is_written = true;
  of_.note_write();
  root.views.clear();
}

Tensor RecordedMemory::computed(const TensorType& type, ir::ValueId value) {
  Tensor made = of_.make(type, value);
  lay_out(made.impl());
  return made;
}

void RecordedMemory::lay_out(TensorImpl& cell) {
  contiguous_strides(cell.shape(), cell.mutable_strides());
  cell.set_storage(
      memory_without_data(cell.numel().hint() * static_cast<int64_t>(element_size(cell.dtype()))));
  new_root(cell, cell.value_id);
}

Location RecordedMemory::location_of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  Root& root = root_of(tensor.impl());
  // An output has the elements of the root's cell, which may be a part of the memory that it was computed in.
  Location location{Layout::of(tensor.impl(), root.seen < 0 ? root.cell->offset() : root.seen_offset)};
  location.input = root.seen;
  shares_memory_ |= root.arguments > 1;
  if (root.seen < 0) location.output = of_.outputs().add(root);
  return location;
}

}  // namespace retrograd
