// See engine/inplace.h; start reading at apply_inplace.
#include "engine/inplace.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/basic_ops.h"
#include "engine/batching.h"
#include "engine/geometry.h"
#include "engine/named_call.h"
#include "engine/recording.h"
#include "engine/region_log.h"
#include "engine/runner.h"
#include "engine/striped_lock.h"
#include "engine/tape.h"

namespace retrograd::inline v0 {

bool shows_an_element_twice(const TensorImpl& x) {
  if (x.numel().raw() == 0) return false;
  for (int i = 0; i < x.rank(); ++i)
    if (x.stride(i).raw() == 0 && x.shape()[i].raw() != 1) return true;
  return false;
}

namespace {

// A view whose base has got other memory (Tensor::set_data) is a view no more.
bool has_lost_its_base(const TensorImpl& view) {
  return !view.graph && view.base && !view.base->graph && !(view.storage() == view.base->storage());
}

bool may_not_be_written(const TensorImpl& x) {
  return x.storage() && x.storage()->is_inference() && !InferenceMode::is_enabled();
}

// ---- overlap --------------------------------------------------------------------------------------------------------

Dim span_of(const TensorImpl& x) {
  Dim n = 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (x.shape()[i].raw() == 0) return 0;
    n += (x.shape()[i] - 1) * x.stride(i);
  }
  return n;
}

// As many elements as their span has, each once: only for such tensors the ends decide the overlap (PyTorch:
// get_overlap_status).
bool is_dense(const TensorImpl& x) { return !shows_an_element_twice(x) && span_of(x) == x.numel(); }

bool have_equal_layout(const TensorImpl& a, const TensorImpl& b) {
  if (!(a.shape() == b.shape())) return false;
  for (int i = 0; i < a.rank(); ++i)
    if (a.shape()[i].raw() != 1 && !(a.stride(i) == b.stride(i))) return false;
  return true;
}

enum class Overlap { none, partial, full };

Overlap overlap_of(const TensorImpl& a, const TensorImpl& b) {
  if (!(a.storage() == b.storage()) || a.numel().raw() == 0 || b.numel().raw() == 0 || !is_dense(a) ||
      !is_dense(b))
    return Overlap::none;
  const Dim a_begin = a.offset(), a_end = a_begin + span_of(a), b_begin = b.offset(),
            b_end = b_begin + span_of(b);
  if (!(a_begin == b_begin && a_end == b_end))
    return a_begin < b_end && b_begin < a_end ? Overlap::partial : Overlap::none;
  return have_equal_layout(a, b) ? Overlap::full : Overlap::partial;
}
bool overlaps_in_part(const TensorImpl& a, const TensorImpl& b) {
  return overlap_of(a, b) == Overlap::partial;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Copies values between cells of one type as plain memory: no record, no tangents.
void copy_memory(TensorImpl& from, const Tensor& to, SourceLocation where = {}) {
  TensorImpl* operand = &from;
  run_into({&basic::clone_op(), {&operand, 1}, nullptr, where, 1}, to);
}

// ---- the stand-in ---------------------------------------------------------------------------------------------------

void drop_storage(void* storage) { RefPtr<Storage>::adopt(static_cast<Storage*>(storage)); }

// Gives `to` the place in the graph that `from` has.
void link_like(const TensorImpl& from, TensorImpl& to) {
  to.requires_grad = from.requires_grad;
  to.grad_fn = from.grad_fn;
  to.output_nr = from.output_nr;
}

// The old value as the function sees it: a cell of its own. While gradients are on, it also has a storage of its own,
// which tells whether anybody keeps the value.
class StandIn {
 public:
  explicit StandIn(TensorImpl& self) {
    RefPtr<TensorImpl> cell = TensorImpl::make();
    cell->alias(self);
    copy_tangents(self, *cell);
    tensor_ = Tensor(cell);
    if (!GradMode::is_enabled()) return;
    if (is_batched(self)) {
      tensor_ = Batching::of(self, "in-place write", {}).present_value(self);
      link_like(self, tensor_.impl());
      copy_tangents(self, tensor_.impl());
      return;
    }
    if (FunctionRecording* function = recorded_function()) {
      tensor_ = function->present_value(self);
      link_like(self, tensor_.impl());
      copy_tangents(self, tensor_.impl());
      if (RegionLog::is_open()) RegionLog::stands_for(tensor_.impl(), self);
      return;
    }
    const int64_t bytes = span_of(self).hint() * static_cast<int64_t>(element_size(self.dtype()));
    cell->set_storage(
        Storage::wrap(self.data(), bytes, drop_storage, RefPtr<Storage>(self.storage()).release()));
    cell->set_storage_offset(0);
    link_like(self, *cell);
    if (RegionLog::is_open()) RegionLog::stands_for(*cell, self);
    // A pack hook may keep its argument; a region knows it by stands_for().
    const RefPtr<SavedTensorHooks> pair = default_saved_tensor_hooks();
    if (pair && !pair->region()) keep_privately();
  }

  const Tensor& tensor() const { return tensor_; }
  bool shares_memory_with(const TensorImpl& x) const { return x.storage() == tensor_.impl().storage(); }

  /// Called before the write: holders of the old value get memory of their own.
  void let_go() {
    RefPtr<TensorImpl> cell = tensor_.ref();
    tensor_.reset();
    if (!GradMode::is_enabled() || cell->graph) return;  // a recorded value is never overwritten
    if (!cell->is_unique() || !cell->storage()->is_unique()) {
      tensor_ = Tensor(std::move(cell));
      keep_privately();
    }
  }

 private:
  void keep_privately() {
    TensorImpl& cell = tensor_.impl();
    const int64_t bytes = cell.storage()->nbytes();
    RefPtr<Storage> block = executor_of(cell.device()).allocate_memory(bytes);
    RefPtr<TensorImpl> copy = TensorImpl::make();
    copy->alias(cell);
    copy->set_storage(block);
    copy_memory(cell, Tensor(copy));
    cell.storage()->rewrap(block->data(), bytes, drop_storage, RefPtr<Storage>(block).release());
  }

  Tensor tensor_;
};

// ---- checks ---------------------------------------------------------------------------------------------------------

[[noreturn]] void refuse(Category category, std::string_view name, std::string_view text,
                         const TensorImpl& self, SourceLocation where) {
  fail(category, name, fmt::format("{}. Written to: {}", text, to_string(self.type())), where);
}

void check_view(const TensorImpl& self, std::string_view name, SourceLocation where) {
  if (self.is_function_view)
    refuse(
        Category::view_inplace_forbidden, name,
        "an argument, or a view of it, that a Function has returned is written to: the write would override "
        "the backward of the Function. Hint: clone the result, or mark_dirty the argument",
        self, where);
  if (self.is_multi_output_view)
    refuse(Category::view_inplace_forbidden, name,
           "an output of split, chunk or unbind cannot be written to. Hint: use narrow or select", self,
           where);
  if (self.is_no_grad_view)
    refuse(Category::view_inplace_forbidden, name,
           "a view made under no_grad is written to with gradients on. Hint: do both inside, or both outside "
           "of no_grad",
           self, where);
}

void check_self(const TensorImpl& self, std::string_view name, SourceLocation where) {
  const Emitter::Values values = Emitter::current().values();
  if (values == Emitter::Values::of_backward ||
      (self.graph && !is_batched(self) && values == Emitter::Values::computed))
    refuse(Category::unsupported, name, "a recorded backward cannot write in place", self, where);
  if (may_not_be_written(self))
    refuse(Category::bad_argument, name,
           "a tensor of inference mode is written to outside of the mode. Hint: clone it", self, where);
  const TensorImpl* base = self.base.get();
  if (GradMode::is_enabled() && (self.requires_grad || (base && base->requires_grad))) {
    if (base) check_view(self, name, where);
    if (base ? base->is_leaf() : self.is_leaf())
      refuse(Category::leaf_inplace, name,
             "a leaf that requires a gradient, or a view of one, is written to. Hint: use no_grad", self,
             where);
  }
}

void check_elements(const TensorImpl& self, std::string_view name, SourceLocation where) {
  if (shows_an_element_twice(self) && !is_one_of(name, {"fill_", "zero_"}))
    refuse(Category::overlapping_write, name,
           "the tensor shows one element more than once. Hint: clone it first", self, where);
}

// Passes on the calls of the function, and refuses operands that conflict with the write: one that overlaps with the
// written tensor, or one that wants a gradient where that is impossible. Views that the function makes of the stand-in
// are not checked.
class OperandCheck final : public PassThrough {
 public:
  OperandCheck(Emitter& below, TensorImpl& written, const StandIn& old, std::string_view name)
      : PassThrough("OperandCheck", below),
        written_(written),
        name_(name),
        may_overlap_(name == "fill_"),  // it reads one number
        // PyTorch's kernels read and write at different places.
        must_lie_apart_(
            is_one_of(name, {"scatter_", "scatter_add_", "scatter_reduce_", "index_add_", "index_copy_",
                             "index_fill_", "index_put_", "index_reduce_", "put_"})) {
    own_.push_back(old.tensor());
  }

  void emit(const Call& call, Tensor* results) override {
    bool is_own = false;
    const auto each_other = [&](auto&& check) {
      for (TensorImpl* x : call.operands) {
        if (!x) continue;
        if (std::any_of(own_.begin(), own_.end(), [&](const Tensor& t) { return t.get() == x; }))
          is_own = true;
        else
          check(*x);
      }
    };
    if (GradMode::is_enabled() && call.op->vjp && is_floating(written_.dtype()))
      each_other([&](TensorImpl& x) { check_gradient(call, x); });
    each_other([&](TensorImpl& x) { check_overlap(call, x); });
    below().emit(call, results);
    if (!call.op->is(Trait::view)) return;
    // A view is checked when it is made: its elements may be spread out.
    if (is_own || call.operands[0]->storage() == written_.storage()) own_.push_back(results[0]);
  }

 private:
  void check_gradient(const Call& call, TensorImpl& x) const {
    const bool wants_gradient = x.requires_grad || (x.base && x.base->requires_grad);
    if (wants_gradient && written_.base) check_view(written_, name_, call.where);
    refresh_view(x);
  }

  void check_overlap(const Call& call, TensorImpl& x) const {
    if (may_overlap_) return;
    const Overlap overlap = &x == &written_ ? Overlap::full : overlap_of(written_, x);
    if (overlap == Overlap::partial || (overlap == Overlap::full && must_lie_apart_))
      fail_call(call, Category::overlapping_write,
                "an operand overlaps with the tensor written to. Hint: clone it first");
  }

  TensorImpl& written_;
  std::string_view name_;
  bool may_overlap_, must_lie_apart_;
  Tensors own_;  // the stand-in, views of it, and operands that were checked
};

void check_result(const TensorImpl& self, const Tensor& result, std::string_view name, SourceLocation where) {
  if (is_batched(result.impl()) &&
      (!is_batched(self) || self.meta->batched.level < result.impl().meta->batched.level))
    fail(
        Category::unsupported, name,
        fmt::format(
            "vmap: {}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
            "that has more elements than `self`. This happened due to `other` being vmapped over but `self` "
            "not being vmapped over. Hint: use the function that gives a new tensor, or make self of a "
            "batched tensor (x.clone(), x + zeros)",
            name),
        where);
  const ScalarType from = result.dtype(), to = self.dtype();
  if (type_category(from) > type_category(to))
    refuse(Category::dtype_mismatch, name,
           fmt::format("a result of {} cannot be cast to the dtype of the tensor", describe(result)), self,
           where);
  if (!(result.impl().shape() == self.shape()))
    refuse(Category::shape_mismatch, name,
           fmt::format("the result is {}, which does not fit", describe(result)), self, where);
  if (!(result.device() == self.device()))
    refuse(Category::bad_argument, name, fmt::format("the result is {}, on another device", describe(result)),
           self, where);
}

// ---- history --------------------------------------------------------------------------------------------------------

bool has_tangents(const TensorImpl& x) { return x.meta && !x.meta->tangents.empty(); }

void move_tangents(const TensorImpl& from, TensorImpl& to) {
  if (has_tangents(from))
    to.need_meta().tangents = from.meta->tangents;
  else if (to.meta)
    to.meta->tangents.clear();
}

// Replaces `cell` in the slots of the history of `record` by a cell that stays as it is: cell -> record -> slot -> cell
// would be a reference cycle. Only records above the cell's own record can hold it. If the cell was written to before,
// its record is not its first one, and all records are searched.
void leave_slots(TensorImpl& cell, Record& record) {
  RefPtr<TensorImpl> stays = TensorImpl::make();
  stays->alias(cell);
  link_like(cell, *stays);
  copy_tangents(cell, *stays);
  const uint64_t made = cell.grad_fn && cell.storage()->version() == 0 ? cell.grad_fn->seq : 0;
  std::vector<Record*> pending{&record};
  std::unordered_set<const Record*> seen{&record};
  while (!pending.empty()) {
    Record& r = *pending.back();
    pending.pop_back();
    for (int i = 0; i < r.slots; ++i)
      if (r.slot(i).value() == &cell) r.slot(i).keep(stays);
    for (int i = 0; i < r.operands; ++i) {
      Record* next = r.edge(i).record();
      if (next && next->seq > made && seen.insert(next).second) pending.push_back(next);
    }
  }
}

// Gives `cell` its place in the graph. From now on retain_grad keeps the gradient of the new value.
void set_history(TensorImpl& cell, RefPtr<Record> record, uint32_t output_nr) {
  if (cell.was_saved) leave_slots(cell, *record);
  if (cell.meta && cell.meta->retained) {
    const RefPtr<GradBox>& box = cell.meta->retained;
    if (cell.grad_fn && cell.grad_fn->hooks)
      std::erase_if(cell.grad_fn->hooks->retained, [&](auto& r) { return r.second == box; });
    record->need_hooks().retained.emplace_back(output_nr, box);
    ++annotation_changes;
  }
  cell.grad_fn = std::move(record);
  cell.output_nr = output_nr;
  cell.requires_grad = true;
}

void make_views_stale(TensorImpl& base) {
  if (!base.storage()->is_unique()) ++base.need_meta().epoch;
}

// The history of the base after a write through a view: written by the op itself where there are tangents to carry,
// else by its record alone.
void write_history_of_base(TensorImpl& view, const Tensor& result, bool recorded, SourceLocation where) {
  TensorImpl& base = *view.base;
  ops::Geometry geometry = ops::geometry_of(view, base);
  TensorImpl* operands[] = {&base, result.get()};
  const Call call{&basic::as_strided_scatter_op(), operands, &geometry, effective_location(where), 1};
  if (has_tangents(base) || has_tangents(result.impl())) {
    Tensor next;
    Emitter::current().emit(call, &next);
    if (recorded) set_history(base, next.impl().grad_fn, next.impl().output_nr);
    move_tangents(next.impl(), base);
  } else if (recorded) {
    const Tensor typed{RefPtr<TensorImpl>(&base)};
    set_history(
        base,
        Record::make(call, &typed, (base.requires_grad ? 1 : 0) | (result.impl().requires_grad ? 2 : 0)), 0);
  } else {
    return;
  }
  make_views_stale(base);
}

void write_history(TensorImpl& self, const Tensor& result, bool recorded) {
  const bool tangents = has_tangents(self) || has_tangents(result.impl());
  if (!recorded && !tangents) return;
  if (recorded) set_history(self, result.impl().grad_fn, result.impl().output_nr);
  if (tangents) move_tangents(result.impl(), self);
  make_views_stale(self);
}

// A record that saved its result must see later writes to self.
void saved_result_is_self(const TensorImpl& self, const TensorImpl& result) {
  Record* record = result.grad_fn.get();
  const int nr = record ? record->slot_of_result(static_cast<int>(result.output_nr)) : -1;
  if (nr < 0) return;
  Slot& slot = record->slot(nr);
  if (!slot.value() || !(slot.value()->storage() == result.storage())) return;
  slot.value()->alias(self);
  slot.version = self.storage()->version();
}

// The new content of self: in self's dtype, with memory and a place in the graph that belong to nobody else.
Tensor owned(Tensor result, const StandIn& old, const TensorImpl& self, bool recorded, SourceLocation where) {
  if (result.dtype() != self.dtype()) result = basic::to(Operand(result, where), self.dtype());
  if (recorded && !result.impl().requires_grad) result = basic::copy(Operand(old.tensor(), where), result);
  if (old.shares_memory_with(result.impl())) return basic::clone(Operand(result, where));
  return result.impl().is_unique() ? result : basic::alias(Operand(result, where));
}

// ---- views of written tensors
// ----------------------------------------------------------------------------------------

bool is_stale(const TensorImpl& view) {
  if (!view.base || !view.base->meta) return false;
  return view.base->meta->epoch != (view.meta ? view.meta->base_epoch : 0);
}

// Several threads that only read may get here: when the base was written, they take turns.
void bring_up_to_date(TensorImpl& view) {
  static constinit StripedLock refreshing;
  if (has_lost_its_base(view)) {
    RefPtr<TensorImpl> base;  // ends after the lock: what it holds may run code of the user
    const std::lock_guard lock(refreshing.of(&view));
    if (has_lost_its_base(view)) {
      base = view.base;
      view.forget_base();
    }
  }
  if (!view.base || !view.base->meta || !view.base->meta->epoch) return;
  std::lock_guard lock(refreshing.of(&view));
  if (!is_stale(view)) return;
  TensorImpl& base = *view.base;
  ops::Geometry geometry = ops::geometry_of(view, base);
  TensorImpl* operand = &base;
  const Call call{&basic::as_strided_op(),
                  {&operand, 1},
                  &geometry,
                  base.grad_fn ? base.grad_fn->where() : SourceLocation(),
                  1};
  if (has_tangents(base) || has_tangents(view)) {
    EnableGradGuard records;
    Tensor fresh;
    Emitter::current().emit(call, &fresh);
    if (fresh.impl().grad_fn) set_history(view, fresh.impl().grad_fn, fresh.impl().output_nr);
    move_tangents(fresh.impl(), view);
  } else if (base.requires_grad) {
    const Tensor typed{RefPtr<TensorImpl>(&view)};
    set_history(view, Record::make(call, &typed, 1), 0);
  }
  view.need_meta().base_epoch = base.meta->epoch;
}

}  // namespace

void take_over_history(const Tensor& self, const Tensor& result, std::string_view name,
                       SourceLocation where) {
  TensorImpl& cell = self.impl();
  bring_up_to_date(cell);
  check_self(cell, name, where);
  check_elements(cell, name, where);
  const bool recorded = GradMode::is_enabled() && result.impl().requires_grad;
  if (recorded && cell.base) check_view(cell, name, where);
  if (cell.base)
    write_history_of_base(cell, result, recorded, where);
  else
    write_history(cell, result, recorded);
  if (recorded) saved_result_is_self(cell, result.impl());
  bring_up_to_date(cell);
}

const Tensor& apply_inplace(const Tensor& self, const std::function<Tensor(const Tensor&)>& op,
                            std::string_view name, SourceLocation where) {
  const NamedCall call(name, where);
  TensorImpl& cell = self.impl(name, where);
  bring_up_to_date(cell);
  check_self(cell, name, where);
  check_elements(cell, name, where);
  StandIn old(cell);
  Tensor result;
  {
    OperandCheck check(Emitter::current(), cell, old, name);
    Emitter::Scope scope(check);
    const detail::AutocastOff no_casts;
    result = op(old.tensor());
  }
  check_result(cell, result, name, where);
  const bool recorded = GradMode::is_enabled() && is_floating(cell.dtype()) &&
                        (cell.requires_grad || result.impl().requires_grad);
  if (recorded && cell.base) check_view(cell, name, where);
  result = owned(std::move(result), old, cell, recorded, where);
  cell.storage()->will_be_written();  // before any change: it may fail
  if (RegionLog::is_open()) RegionLog::before_write(cell);
  old.let_go();
  // Before the history changes: the tensor outside of vmap may refuse the write.
  if (is_batched(cell)) Batching::of(cell, name, where).write(cell, result, effective_location(where));
  if (cell.base)
    write_history_of_base(cell, result, recorded, where);
  else
    write_history(cell, result, recorded);
  if (FunctionRecording* function = recorded_function(); function && !is_batched(cell))
    function->write(cell, result, effective_location(where));
  else if (!is_batched(cell))
    copy_memory(result.impl(), self, effective_location(where));
  if (RegionLog::is_open()) RegionLog::wrote(cell, result.impl());
  if (recorded) saved_result_is_self(cell, result.impl());
  bring_up_to_date(cell);
  return self;
}

const Tensor& change_geometry(const Tensor& self, const std::function<Tensor(const Tensor&)>& op,
                              std::string_view name, SourceLocation where) {
  const NamedCall call(name, where);
  TensorImpl& cell = self.impl(name, where);
  bring_up_to_date(cell);
  check_self(cell, name, where);
  if (cell.requires_grad && cell.is_leaf())
    refuse(Category::leaf_inplace, name,
           "the geometry of a leaf that requires a gradient is changed. Hint: use the function that gives a "
           "view",
           cell, where);
  if (FunctionRecording* function = recorded_function()) function->geometry_changes(cell, where);
  const RefPtr<TensorImpl> before = TensorImpl::make();
  before->alias(cell);
  link_like(cell, *before);
  copy_tangents(cell, *before);
  before->base = cell.base;
  before->graph = cell.graph;
  before->value_id = cell.value_id;
  if (RegionLog::is_open()) RegionLog::stands_for(*before, cell);
  const EnableGradGuard follows;  // the history has the shape of the tensor, also where gradients are off
  const Tensor shown = op(Tensor(before));
  TensorImpl& view = shown.impl();
  RG_ASSERT(view.storage() == cell.storage());
  if (view.requires_grad) set_history(cell, view.grad_fn, view.output_nr);
  move_tangents(view, cell);
  cell.alias(view);
  cell.value_id = view.value_id;
  cell.storage()->bump_version(effective_location(where));
  cell.set_made_at_version(cell.storage()->version());
  return self;
}

bool write_directly(const OpInfo& op, const Tensor& self, std::span<TensorImpl* const> operands, void* attrs,
                    SourceLocation where) {
  const TensorImpl& cell = self.impl();
  if (GradMode::is_enabled() || RegionLog::is_open() || &Emitter::current() != &eager_emitter() ||
      cell.graph || shows_an_element_twice(cell) || may_not_be_written(cell))
    return false;
  for (const TensorImpl* x : operands)
    if (x && (x->graph || !(x->type() == cell.type()) || overlaps_in_part(cell, *x))) return false;
  run_into({&op, operands, attrs, where, 1}, self);
  return true;
}

bool is_outdated(const TensorImpl& view) {
  return view.base && view.is_fixed_view() && (view.grad_fn || view.base->requires_grad) &&
         view.storage()->version() != view.made_at_version();
}

void refresh_view(TensorImpl& view) {
  if (!view.base) return;
  if (!has_lost_its_base(view) && is_outdated(view))
    fail(Category::view_inplace_forbidden, "view",
         fmt::format("{}, {}, is used after its memory was written to. Hint: {}", to_string(view.type()),
                     view.is_function_view  ? "an argument, or a view of it, that a Function has returned"
                     : view.is_no_grad_view ? "a view made under no_grad"
                                            : "an output of split, chunk or unbind",
                     view.is_function_view  ? "clone the result of the Function"
                     : view.is_no_grad_view ? "make it where it is used"
                                            : "use narrow or select"));
  bring_up_to_date(view);
}

}  // namespace retrograd
