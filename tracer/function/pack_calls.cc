// See tracer/function/pack_calls.h.
#include "tracer/function/pack_calls.h"

#include <fmt/format.h>

#include "engine/region.h"
#include "tracer/function/function_recorder.h"
#include "tracer/function/opaque_value.h"
#include "tracer/observe/checks.h"

namespace retrograd::inline v0 {
namespace {

// A slot outside a tape.
struct PackedValue {
  RefPtr<Record> record;
  Slot slot;
};

class PackCode final : public HostCode {
 public:
  PackCode(RefPtr<SavedTensorHooks> pair, Record& record, const Slot& slot)
      : pair_(std::move(pair)), record_(&record), index_(slot.index), is_result_(slot.is_result) {
    types = {opaque_value_type()};
  }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    auto packed = std::make_shared<PackedValue>();
    packed->record = record_;
    packed->slot.index = index_;
    packed->slot.is_result = is_result_;
    const RefPtr<SavedTensorHooks> pair = pair_ ? pair_ : default_saved_tensor_hooks();
    RG_ASSERT(pair);
    retrograd::pack(packed->slot, *operands[0], *record_, pair);
    results[0] = make_opaque_value(std::move(packed));
  }
  SavedTensorHooks* pair() const override { return pair_ ? pair_.get() : default_saved_tensor_hooks().get(); }

 private:
  const RefPtr<SavedTensorHooks> pair_;  // null: the default pair of the run
  const RefPtr<Record> record_;          // of the recorded tape, for errors
  const uint8_t index_;
  const bool is_result_;
};

class UnpackCode final : public HostCode {
 public:
  UnpackCode(const TensorType& type, bool is_stale) : is_stale_(is_stale) { types = {type}; }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    PackedValue& packed = *static_cast<PackedValue*>(opaque_content(*operands[0]).get());
    if (is_stale_ && packed.slot.packed()->aliased)
      fail(Category::version_mismatch, packed.record->op->name,
           "a tensor needed for the gradient was modified in place after it was saved. Hint: clone it before "
           "writing to it",
           packed.record->where());
    results[0] = retrograd::unpack(*packed.record, packed.slot);
  }
  std::weak_ptr<Slot> slot(std::span<TensorImpl* const> operands) const override {
    const std::shared_ptr<void>& content = opaque_content(*operands[0]);
    return std::shared_ptr<Slot>(content, &static_cast<PackedValue*>(content.get())->slot);
  }

 private:
  const bool is_stale_;  // the function has written to the value since it was packed
};

// Compares what an unpack gave in the graph with what it gave when it was called.
class CheckCode final : public HostCode {
 public:
  CheckCode(Record& record, const Slot& slot)
      : record_(&record), pair_(slot.packed()->hooks), index_(slot.index), is_result_(slot.is_result) {
    types = {opaque_value_type()};
  }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    const Tensor inlined = seen(*operands[0]), called = seen(*operands[1]);
    if (!has_same_bits(inlined, called))
      fail(Category::bad_argument, record_->op->name,
           fmt::format("{} {}, {}, saved at {}, has other bits with {} in the graph than with its pack and "
                       "unpack called. Hint: a traceable pair computes its results from its arguments alone",
                       is_result_ ? "result" : "operand", index_, describe(inlined),
                       to_string(record_->where()), name_of(*pair_)),
           record_->where());
    results[0] = make_opaque_value({});
  }

 private:
  static std::string name_of(const SavedTensorHooks& pair) {
    return pair.cache_key.empty() ? "a traceable pair that has no cache_key"
                                  : fmt::format("the traceable pair '{}'", pair.cache_key);
  }
  const RefPtr<Record> record_;  // of the recorded tape
  const RefPtr<SavedTensorHooks> pair_;
  const uint8_t index_;
  const bool is_result_;
};

}  // namespace

void PackCalls::note_results(const Tensors& results) {
  for (const Tensor& r : results)
    if (r.defined()) results_.insert(r.impl().storage().get());
}

// In a backward, all values are intermediate ones. A pair that was made outside knows the memory of arguments, not that
// of their stand-ins.
bool PackCalls::is_let_through(SavedTensorHooks& pair, const Storage* memory) {
  const Root* const root = of_.forward() ? nullptr : of_.memory().find(memory);
  if (!root) return true;
  bool is_kept = false;
  for (const StandIn& s : of_.inputs().stand_ins()) {
    if (s.tensor.impl().storage().get() != memory) continue;
    const bool keeps = pair.keeps(Tensor(RefPtr<TensorImpl>(s.stands_for)));
    const RefPtr<SavedTensorHooks> own(&pair == pair_.get() ? nullptr : &pair);
    kept_arguments_.push_back({own, s.argument >= 0 ? s.argument : s.base_of, keeps});
    is_kept |= keeps;
  }
  if (is_kept) return false;
  if (pair.filter == PackFilter::all) return true;
  const bool is_outside = root->input >= 0 || root->seen >= 0;
  const bool is_callers = root->arguments > 0 || root->base_of >= 0;
  return !is_outside || (pair.filter == PackFilter::no_static && is_callers);
}

// The value of a slot that need not be unpacked, as it is a result of the forward.
TensorImpl* PackCalls::held_anyway(const Slot& slot, const Packing* from) const {
  if (slot.value() || !from || !from->unpacked || !of_.forward()) return slot.value();
  return of_.forward()->host().packs().results_.contains(from->memory.get()) ? from->unpacked.get() : nullptr;
}

void PackCalls::emit_pack(const Call& call) {
  const PackAttrs& attrs = call.attrs_as<PackAttrs>();
  const Tensor value(RefPtr<TensorImpl>(call.operands[0]));
  const RefPtr<Storage> memory = value.impl().storage();
  const ir::ValueId id = of_.value_of(value);
  const bool is_traceable = attrs.pair->traceable;
  if (is_traceable && !is_let_through(*attrs.pair, memory.get())) return;
  Packing& packing = packed_[attrs.slot] = {id, memory, memory ? memory->version() : 0, {}, {}};
  has_traceable_ |= is_traceable;
  if (is_traceable && attrs.pair->filter == PackFilter::donated) packing.unpacked = value.ref();
  if (!is_traceable || of_.pairs() != PairForm::inlined) {
    of_.host().before_pair(*attrs.pair);
    const RefPtr<SavedTensorHooks> own(attrs.pair == pair_.get() ? nullptr : attrs.pair);
    const ir::ValueId operands[] = {of_.value_of(value)};
    auto code = RefPtr<HostCode>::adopt(new PackCode(own, *attrs.owner, *attrs.slot));
    const ir::ValueId packed = of_.host().emit(ops::pack, operands, std::move(code), call.where);
    packing.called = of_.memory().computed(opaque_value_type(), packed);
  }
  *attrs.payload = is_traceable ? attrs.pair->pack(value) : packing.called;
}

// Null for a slot that was not packed here.
const PackCalls::Packing* PackCalls::find(const Slot& slot) const {
  if (!slot.packed()) return nullptr;
  if (const auto it = packed_.find(&slot); it != packed_.end()) return &it->second;
  return of_.forward() ? of_.forward()->host().packs().find(slot) : nullptr;
}

// Whether the forward has not changed this memory since a slot saved it.
bool PackCalls::is_unchanged(const Storage& memory, uint32_t version) const {
  return of_.forward() && of_.forward()->memory().version_at_end(memory) == version;
}

// For a slot that was not packed, or was packed by a traceable pair. The packed value may be the saved value itself,
// in memory from outside to which runs have written since: only writes of the function until the end of the recording
// count.
void PackCalls::unpack_recorded(const Call& call, Slot& slot, Tensor* results) {
  Packed* const packed = slot.packed();
  if (!packed || !packed->aliased || !is_unchanged(*packed->aliased, slot.version))
    return call.op->run_on_host(call, results);
  struct WithoutCheck {
    explicit WithoutCheck(Packed& p) : packed(p), aliased(std::exchange(p.aliased, {})) {}
    ~WithoutCheck() { packed.aliased = aliased; }
    Packed& packed;
    const RefPtr<Storage> aliased;
  } scope(*packed);
  note_saved(*scope.aliased);
  call.op->run_on_host(call, results);
}

Tensor PackCalls::unpack_called(const Call& call, const Slot& slot, const Packing& from) {
  const TensorType type = slot.packed()->type;
  of_.host().before_pair(*slot.packed()->hooks);
  const RecordedMemory& memory = (of_.forward() ? *of_.forward() : of_).memory();
  const bool is_stale = from.memory && memory.version_at_end(*from.memory) != from.version;
  const ir::ValueId operands[] = {of_.value_of(from.called)};
  auto code = RefPtr<HostCode>::adopt(new UnpackCode(type, is_stale));
  return of_.make(type, of_.host().emit(ops::unpack, operands, std::move(code), call.where));
}

void PackCalls::check_unpacked(const Call& call, const Slot& slot, const Tensor& inlined,
                               const Tensor& called) {
  const ir::ValueId operands[] = {of_.value_of(inlined), of_.value_of(called)};
  auto code = RefPtr<HostCode>::adopt(new CheckCode(*call.attrs_as<UnpackAttrs>().record, slot));
  of_.host().emit(ops::function, operands, std::move(code), call.where);
}

// A backward reads the memory in place.
void PackCalls::note_saved(const Storage& memory) {
  const Root* const root = of_.forward()->memory().find(&memory);
  if (!root || root->input < 0 || root->outside != &memory) return;
  if (read_outside_.insert(root->input).second) of_.reads().saved_outside.push_back(root->input);
}

// A recomputation in a backward reads values of the forward: they must last until the last record that needs one.
Tensor PackCalls::region_input(Region& region, size_t i) {
  const Slot& slot = region.kept_slot(i);
  TensorImpl* const value = slot.value();
  const bool is_kept = value && value->storage() && is_unchanged(*value->storage(), slot.version);
  const Tensor input = is_kept ? Tensor(RefPtr<TensorImpl>(value)) : region.kept(i);
  if (is_kept) note_saved(*value->storage());
  if (of_.forward()) of_.note_users(input, region.owners());
  return input;
}

// As operations, by a node, or both.
void PackCalls::unpack_value(const Call& call, Slot& slot, const Packing* from, Tensor* results) {
  const bool is_inlined = !from || (slot.packed()->hooks->traceable && of_.pairs() != PairForm::called);
  if (is_inlined) {
    of_.host().versions().check(*call.attrs_as<UnpackAttrs>().record, slot);
    unpack_recorded(call, slot, results);
  }
  if (!from || !from->called.defined()) return;
  const Tensor called = unpack_called(call, slot, *from);
  if (is_inlined)
    check_unpacked(call, slot, results[0], called);
  else
    results[0] = called;
}

void PackCalls::emit_unpack(const Call& call, Tensor* results) {
  const UnpackAttrs& attrs = call.attrs_as<UnpackAttrs>();
  if (attrs.region) {
    results[0] = region_input(*attrs.region, static_cast<size_t>(attrs.slot));
    return;
  }
  Slot& slot = attrs.record->slot(attrs.slot);
  if (slot.packed() && slot.packed()->hooks->region()) {
    results[0] = slot.packed()->hooks->unpack(slot.packed()->payload);
    return;
  }
  const Packing* const from = find(slot);
  TensorImpl* const value = held_anyway(slot, from);
  if (value && value->storage() && !slot.released && is_unchanged(*value->storage(), slot.version)) {
    results[0] = Tensor(RefPtr<TensorImpl>(value));
    note_saved(*value->storage());
    of_.host().versions().check(*attrs.record, slot);
  } else {
    unpack_value(call, slot, from, results);
  }
  if (of_.forward() && from) of_.reads().straight.emplace_back(of_.value_of(results[0]), from->value);
}

}  // namespace retrograd
