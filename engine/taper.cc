// See engine/taper.h.
#include "engine/taper.h"

#include <algorithm>

#include "engine/autocast.h"
#include "engine/bookkeeping.h"
#include "engine/inplace.h"
#include "engine/region_log.h"

namespace retrograd::inline v0 {
namespace {

struct Wants {
  uint64_t gradients = 0;  // bit i: operand i leads to a leaf or a record
  // The result requires a gradient, if only because of the base of a view made without gradients (PyTorch).
  bool any = false;
};

Wants wants_of(const Call& call) {
  Wants wants;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    TensorImpl* x = call.operands[i];
    if (!x || !is_floating(x->dtype())) continue;
    if (x->base) {
      refresh_view(*x);  // afterwards it may be a view no more
      wants.any |= x->base && x->base->requires_grad;
    }
    if (!x->requires_grad) continue;
    wants.gradients |= uint64_t{1} << (i < 64 ? i : 63);
    wants.any = true;
  }
  return wants;
}

bool same_edge(const TensorImpl& cell, const Edge& edge) {
  return edge.leaf() ? edge.leaf() == &cell
                     : cell.grad_fn.get() == edge.record() && cell.output_nr == edge.output_nr();
}

// Of the memory that the call has made: a result may be an operand, or show its memory. What runs on the host may also
// give a tensor that was there before (unpack, the function of a user); the calls that it makes itself come here.
void mark_inference(const Call& call, Tensor* results) {
  if (call.op->run_on_host && !call.op->is(Trait::fresh)) return;
  for (int i = 0; i < call.outputs; ++i) {
    if (!results[i].has_storage()) continue;
    const RefPtr<Storage>& memory = results[i].impl().storage();
    const auto is_of = [&](const TensorImpl* x) { return x && x->storage() == memory; };
    if (std::ranges::none_of(call.operands, is_of)) memory->mark_inference();
  }
}

}  // namespace

// What runs on the host emits calls of its own.
inline void Taper::run(const Call& call, Tensor* results) {
  if (!RegionLog::is_open() || call.op->run_on_host) [[likely]]
    return below().emit(call, results);
  RegionLog::begin(call);
  below().emit(call, results);
  RegionLog::end(call, results);
}

// With gradients off this is nearly always a jump: the rest is in separate functions, so that nothing is prepared for
// it.
inline void Taper::emit_as_given(const Call& call, Tensor* results) {
  if (GradMode::is_enabled()) return emit_and_record(call, results);
  if (RegionLog::is_open() || call.op->is(Trait::view) || InferenceMode::is_enabled())
    return emit_without_record(call, results);
  below().emit(call, results);
}

void Taper::emit(const Call& call, Tensor* results) {
  if (detail::is_autocast(*call.op)) [[unlikely]]
    return emit_cast(call, results);
  emit_as_given(call, results);
}

void Taper::emit_cast(const Call& call, Tensor* results) {
  const detail::CastCall cast(call, *this);
  emit_as_given(cast.call(), results);
}

void Taper::emit_without_record(const Call& call, Tensor* results) {
  run(call, results);
  if (call.op->is(Trait::view))
    results[0].impl().is_no_grad_view = true;
  else if (InferenceMode::is_enabled())
    mark_inference(call, results);
}

void Taper::emit_and_record(const Call& call, Tensor* results) {
  const OpInfo& op = *call.op;
  if (op.is(Trait::bookkeeping))
    return &op == &ops::unpack ? emit_unpack(call, results) : below().emit(call, results);
  const Wants wants = op.vjp ? wants_of(call) : Wants();
  run(call, results);
  if (!wants.any) return;
  RefPtr<Record> record = Record::make(call, results, wants.gradients);
  for (int i = 0; i < call.outputs; ++i) {
    if (!results[i].defined() || !is_floating(results[i].dtype())) continue;
    TensorImpl& cell = results[i].impl();
    cell.grad_fn = i + 1 < call.outputs ? record : std::move(record);
    cell.output_nr = static_cast<uint32_t>(i);
    cell.requires_grad = true;
  }
}

// The value continues the graph at the recorded edge, whatever cell or hook it comes from (straight through).
void Taper::emit_unpack(const Call& call, Tensor* results) {
  below().emit(call, results);
  if (!results[0].defined()) return;
  if (call.attrs_as<HostAttrs>().code) return;  // the replay of the recorded function links the value
  const UnpackAttrs& attrs = call.attrs_as<UnpackAttrs>();
  if (attrs.region) return;
  Record& record = *attrs.record;
  const Slot& slot = record.slot(attrs.slot);
  const Edge edge = slot.is_result ? Edge(&record, slot.index) : record.edge(slot.index);
  if (edge ? same_edge(results[0].impl(), edge) : !results[0].requires_grad()) return;
  if (edge.leaf() && !slot.packed() &&
      !results[0].impl().meta) {  // a leaf saved through an alias: the leaf itself has the same memory
    results[0] = Tensor(RefPtr<TensorImpl>(edge.leaf()));
    return;
  }
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->alias(results[0].impl());
  copy_tangents(results[0].impl(), *cell);
  cell->requires_grad = static_cast<bool>(edge);
  if (edge.leaf()) cell->need_meta().stands_for = RefPtr<TensorImpl>(edge.leaf());
  cell->grad_fn = RefPtr<Record>(edge.record());
  cell->output_nr = edge.output_nr();
  results[0] = Tensor(std::move(cell));
}

}  // namespace retrograd
