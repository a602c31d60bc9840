// Host nodes of a recorded function (tracer/host_node.h): hooks, saved-tensor hooks, and what stands before them. See
// tracer/function_recorder.h; start reading at publish.
//
// A traceable hook or pair is called while the function is recorded, and what it does is part of the graph. An opaque one is called in each
// run: a hook by the node `hook`, a pair by `pack` where a record saves, and by `unpack` where a rule first asks. What pack made
// of a value lies in a slot of its own, which travels as a parcel from one node to the other, from the forward to the backward if need be. The
// default pair of the call is that of each run; one that the function opens itself is always the same.
// What an opaque hook gives may lie in any way: its value has no layout here, as those of a captured backward.
#include <algorithm>

#include "engine/runner.h"
#include "ops/shape_ops.h"
#include "tracer/function_recorder.h"

namespace retrograd {
namespace {

// An input gets a value.
class WriteOutCode final : public HostCode {
 public:
  WriteOutCode(const TensorType& type, bool all_memory) : all_memory_(all_memory) { types = {type}; }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    results[0] = all_memory_ ? row_of(*operands[0]) : seen(*operands[0]);
    if (operands[1]->storage() == operands[0]->storage())
      operands[0]->storage()->bump_version();
    else
      run_into({&ops::info<ops::Clone>, {&operands[1], 1}, nullptr, {}, 1}, results[0]);
  }
  void replay(std::span<TensorImpl* const> operands, Tensor* results) override {
    results[0] = Tensor(RefPtr<TensorImpl>(operands[1]));
  }

 private:
  const bool all_memory_;
};

// A slot outside of a tape.
struct PackedValue {
  RefPtr<Record> record;
  Slot slot;
};

class PackCode final : public HostCode {
 public:
  PackCode(RefPtr<SavedTensorHooks> pair, Record& record, const Slot& slot)
      : pair_(std::move(pair)), record_(&record), index_(slot.index), is_result_(slot.is_result) {
    types = {parcel_type()};
  }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    auto packed = std::make_shared<PackedValue>();
    packed->record = record_;
    packed->slot.index = index_;
    packed->slot.is_result = is_result_;
    const RefPtr<SavedTensorHooks> pair = pair_ ? pair_ : default_saved_tensor_hooks();
    RG_ASSERT(pair);
    retrograd::pack(packed->slot, *operands[0], *record_, pair);
    results[0] = make_parcel(std::move(packed));
  }
  SavedTensorHooks* pair() const override { return pair_ ? pair_.get() : default_saved_tensor_hooks().get(); }

 private:
  const RefPtr<SavedTensorHooks> pair_;  // null: the default one of the run
  const RefPtr<Record> record_;          // of the recorded tape, for errors
  const uint8_t index_;
  const bool is_result_;
};

class UnpackCode final : public HostCode {
 public:
  UnpackCode(const TensorType& type, bool is_stale) : is_stale_(is_stale) { types = {type}; }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    PackedValue& packed = *static_cast<PackedValue*>(open_parcel(*operands[0]).get());
    if (is_stale_ && packed.slot.packed()->aliased)
      fail(Category::version_mismatch, packed.record->op->name,
           "a tensor needed for the gradient was modified in place behind the place where it was saved. "
           "Hint: clone "
           "it before writing to it",
           packed.record->where());
    results[0] = retrograd::unpack(*packed.record, packed.slot);
  }
  std::weak_ptr<Slot> slot(std::span<TensorImpl* const> operands) const override {
    const std::shared_ptr<void>& content = open_parcel(*operands[0]);
    return std::shared_ptr<Slot>(content, &static_cast<PackedValue*>(content.get())->slot);
  }

 private:
  const bool is_stale_;  // the function has written to the value since it was packed
};

}  // namespace

ir::ValueId FunctionRecorder::emit_host(const OpInfo& op, std::span<const ir::ValueId> operands,
                                        RefPtr<HostCode> code, SourceLocation where) {
  ir::Node& node = append_host_node(graph_, op, operands, *code);
  node.where = where;
  node.origin = position_.origin;
  host_.push_back(std::move(code));
  ++effects_;
  no_grad_.resize(graph_.nodes().size(), !GradMode::is_enabled());
  return node.first_result;
}

// ---- what host code finds ------------------------------------------------------------------------------------------------------------

// What was written so far is put outside, .grad of leaves included. A backward of its own writes nothing.
void FunctionRecorder::publish() {
  if (forward_) return;
  for (size_t i = 0; i < root_order_.size(); ++i) publish_write(*root_order_[i]);
  for (size_t i = 0; i < grads_.size(); ++i) publish_grad(grads_[i]);
}

void FunctionRecorder::publish_write(Root& root) {
  if (!root.is_written || root.input < 0 || root.is_outside) return;
  check_alone(root);
  const ir::ValueId operands[] = {input_value(root), root.value};
  root.value = emit_host(host::write_out, operands,
                         RefPtr<HostCode>::adopt(new WriteOutCode(graph_.type(root.value), root.is_flat)));
  root.is_outside = root.was_outside = true;
  root.views.clear();
}

// ---- saved-tensor hooks --------------------------------------------------------------------------------------------------------------

void FunctionRecorder::emit_pack(const Call& call) {
  const PackAttrs& attrs = call.attrs_as<PackAttrs>();
  const Tensor value(RefPtr<TensorImpl>(call.operands[0]));
  const RefPtr<Storage> memory = value.impl().storage();
  const ir::ValueId id = value_of(value);
  packed_[attrs.slot] = {id, memory, memory ? memory->version() : 0};
  if (attrs.pair->traceable) {
    *attrs.payload = attrs.pair->pack(value);
    return;
  }
  before_pair(*attrs.pair);
  const RefPtr<SavedTensorHooks> own(attrs.pair == pair_.get() ? nullptr : attrs.pair);
  const ir::ValueId operands[] = {value_of(value)};
  const ir::ValueId parcel =
      emit_host(host::pack, operands, RefPtr<HostCode>::adopt(new PackCode(own, *attrs.owner, *attrs.slot)),
                call.where);
  *attrs.payload = computed(parcel_type(), parcel);
}

// Null of a slot that was not packed here.
const FunctionRecorder::PackedSlot* FunctionRecorder::packed(const Slot& slot) const {
  if (!slot.packed()) return nullptr;
  if (const auto it = packed_.find(&slot); it != packed_.end()) return &it->second;
  return forward_ ? forward_->packed(slot) : nullptr;
}

// What runs do to memory from outside afterwards is not what the function does.
uint32_t FunctionRecorder::version_at_end(const Storage& memory) const {
  const auto it = versions_.find(&memory);
  return it == versions_.end() ? memory.version() : it->second;
}

// Of a slot that was not packed, or by a traceable pair. What that has packed may be the saved value itself, in memory from outside which runs
// have written to since: whether the function had, when the recording was over, is what counts.
void FunctionRecorder::unpack_recorded(const Call& call, Slot& slot, Tensor* results) {
  Packed* const packed = slot.packed();
  const bool is_unchanged =
      packed && packed->aliased && forward_ && forward_->version_at_end(*packed->aliased) == slot.version;
  if (!is_unchanged) return call.op->run_on_host(call, results);
  struct WithoutCheck {
    explicit WithoutCheck(Packed& p) : packed(p), aliased(std::exchange(p.aliased, {})) {}
    ~WithoutCheck() { packed.aliased = aliased; }
    Packed& packed;
    const RefPtr<Storage> aliased;
  } scope(*packed);
  note_saved(*scope.aliased);
  call.op->run_on_host(call, results);
}

// A backward reads it where it lies.
void FunctionRecorder::note_saved(const Storage& memory) {
  const auto it = forward_->roots_.find(&memory);
  if (it == forward_->roots_.end() || it->second.input < 0 || it->second.outside != &memory) return;
  if (read_outside_.insert(it->second.input).second) saved_outside_.push_back(it->second.input);
}

void FunctionRecorder::emit_unpack(const Call& call, Tensor* results) {
  const UnpackAttrs& attrs = call.attrs_as<UnpackAttrs>();
  Slot& slot = attrs.record->slot(attrs.slot);
  const PackedSlot* from = packed(slot);
  if (TensorImpl* value = slot.value(); value && value->storage() && !slot.released && forward_ &&
                                        forward_->version_at_end(*value->storage()) == slot.version) {
    results[0] = Tensor(RefPtr<TensorImpl>(value));
    note_saved(*value->storage());
    check_version(*attrs.record, slot);
  } else if (!from || slot.packed()->hooks->traceable) {
    check_version(*attrs.record, slot);
    unpack_recorded(call, slot, results);
  } else {
    before_pair(*slot.packed()->hooks);
    const bool is_stale =
        from->memory && (forward_ ? *forward_ : *this).version_at_end(*from->memory) != from->version;
    const ir::ValueId operands[] = {value_of(std::any_cast<const Tensor&>(slot.packed()->payload))};
    results[0] = without_layout(
        slot.packed()->type,
        emit_host(host::unpack, operands,
                  RefPtr<HostCode>::adopt(new UnpackCode(slot.packed()->type, is_stale)), call.where));
  }
  if (forward_ && from) straight_.emplace_back(value_of(results[0]), from->value);
}

// ---- hooks on gradients --------------------------------------------------------------------------------------------------------------

void FunctionRecorder::emit_hook(const Call& call, Tensor* results) {
  const HookAttrs& attrs = call.attrs_as<HookAttrs>();
  if (forward_ && position_.at_leaf) {  // leaves are outside: their hooks run where the gradients go
    for (int i = 0; i < call.outputs; ++i)
      results[i] = Tensor(RefPtr<TensorImpl>(call.operands[static_cast<size_t>(i)]));
    return;
  }
  if (attrs.hook->traceable || is_nested())
    return run_hook(attrs, call.operands, {results, static_cast<size_t>(call.outputs)});
  if (GradMode::is_enabled())
    cannot_record("hook", "an opaque hook in a backward with create_graph", attrs.hook->where);
  if (attrs.hook->kind == Hook::Kind::post_accumulate) return emit_post_accumulate(attrs, call.where);
  before_code();
  std::vector<TensorType> types;
  for (int i = 0; i < call.outputs; ++i)
    types.push_back(call.operands[static_cast<size_t>(i)] ? call.operands[static_cast<size_t>(i)]->type()
                                                          : TensorType{});
  Call plain = call;
  plain.attrs = nullptr;
  ir::Node& node = append(plain, types);
  ++effects_;
  node.handle = graph_.add_handle(ir::Input::Kind::hook, {});
  inputs_.push_back({.hook = RefPtr<Hook>(attrs.hook), .leaf = RefPtr<TensorImpl>(attrs.leaf)});
  for (int i = 0; i < call.outputs; ++i) {
    TensorImpl* operand = call.operands[static_cast<size_t>(i)];
    if (operand) results[i] = without_layout(operand->type(), node.first_result + i);
  }
}

}  // namespace retrograd
