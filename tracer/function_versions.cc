// Whether code of the user's has written to what a recorded function saved: see tracer/function_recorder.h.
//
// What the function writes itself is seen while it is recorded. Code that a run calls may write to any tensor that is an input. So before it is
// called, a node `note_versions` notes the versions of the inputs that have been read since the last such code: records that were made since
// then have saved these as they are now. Where one of them is unpacked and code has run since, a node `check_version` compares. The noted versions
// travel as a parcel, from the forward to the backward if need be. The stretches between two calls of code are **epochs**; which of them a
// record was made in follows from its number.
#include <algorithm>

#include "tracer/function_recorder.h"

namespace retrograd {
namespace {

struct Versions {
  std::vector<RefPtr<Storage>> memory;
  std::vector<uint32_t> versions;
};

class NoteVersionsCode final : public HostCode {
 public:
  NoteVersionsCode() { types = {parcel_type()}; }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    auto noted = std::make_shared<Versions>();
    for (const TensorImpl* x : operands) {
      noted->memory.push_back(x->storage());
      noted->versions.push_back(x->storage()->version());
    }
    results[0] = make_parcel(std::move(noted));
  }
};

class CheckVersionCode final : public HostCode {
 public:
  CheckVersionCode(Record& record, const Slot& slot, TensorType type, size_t number)
      : record_(&record), slot_(&slot), type_(std::move(type)), number_(number) {
    types = {parcel_type()};
  }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    const auto& noted = *static_cast<const Versions*>(open_parcel(*operands[0]).get());
    const Storage& memory = *noted.memory[number_];
    if (memory.version() != noted.versions[number_])
      fail_version(*record_, *slot_, memory, type_, noted.versions[number_]);
    results[0] = seen(*operands[0]);
  }
  // The forward that is computed anew has values of its own.
  void replay(std::span<TensorImpl* const> operands, Tensor* results) override {
    results[0] = seen(*operands[0]);
  }

 private:
  const RefPtr<Record> record_;  // of the recorded tape
  const Slot* slot_;             // of the record
  const TensorType type_;
  const size_t number_;  // among what was noted
};

}  // namespace

// Inputs that an op which may save them reads.
void FunctionRecorder::note_saves(const Call& call) {
  if (!call.op->saves || !GradMode::is_enabled()) return;
  for (const TensorImpl* x : call.operands)
    if (x && x->storage()) read_since_code_.insert(x->storage().get());
}

void FunctionRecorder::note_versions(const std::vector<std::pair<const Storage*, ir::ValueId>>& inputs,
                                     bool code_follows) {
  Epoch epoch{forward_ ? first_seq_ : next_sequence(), code_follows, {}, {}};
  std::vector<ir::ValueId> operands;
  for (const auto& [memory, value] : inputs)
    if (epoch.numbers.try_emplace(memory, operands.size()).second) operands.push_back(value);
  if (!operands.empty())
    epoch.versions = computed(parcel_type(), emit_host(host::note_versions, operands,
                                                       RefPtr<HostCode>::adopt(new NoteVersionsCode)));
  epochs_.push_back(std::move(epoch));
}

// What a backward of the function may unpack.
void FunctionRecorder::note_versions(const Walk& walk) {
  std::vector<std::pair<const Storage*, ir::ValueId>> inputs;
  for (const Walk::Item& item : walk.order())
    for (int i = 0; i < item.record->slots; ++i) {
      TensorImpl* const value = item.record->slot(i).value();
      if (!value || !value->storage() || !forward_->is_input(*value->storage())) continue;
      inputs.emplace_back(value->storage().get(), value_of(Tensor(RefPtr<TensorImpl>(value))));
    }
  note_versions(inputs, /*code_follows=*/false);
}

// What a pure pair cannot do needs no guard, which would cut a device's graphs of launches.
void FunctionRecorder::before_pair(const SavedTensorHooks& pair) {
  if (!pair.is_pure) return before_code();
  (forward_ ? forward_ : this)->calls_code_ = true;
  publish();
}

// What was written so far is put outside, and versions are noted as they are when the code is called.
void FunctionRecorder::before_code() {
  (forward_ ? forward_ : this)->calls_code_ = true;
  begin_backwards();
  for (size_t i = epochs_.size(); i-- > 0 && !epochs_[i].code_follows;) epochs_[i].code_follows = true;
  if (forward_) return;
  publish();
  std::vector<std::pair<const Storage*, ir::ValueId>> inputs;
  for (const Root* root : root_order_)
    if (root->input >= 0 && read_since_code_.contains(root->storage.get()))
      inputs.emplace_back(root->storage.get(), root->is_written ? root->value : input_value(*root));
  read_since_code_.clear();
  note_versions(inputs, /*code_follows=*/true);
}

bool FunctionRecorder::is_input(const Storage& memory) const {
  const auto it = roots_.find(&memory);
  return it != roots_.end() && it->second.input >= 0;
}

// The epoch in which the record was made, if it is over; null if it is not, or if nothing was noted of this memory.
const FunctionRecorder::Epoch* FunctionRecorder::epoch_of(const Record& record, const Storage& memory) const {
  const auto it = std::ranges::upper_bound(epochs_, record.seq, {}, &Epoch::end);
  return it != epochs_.end() && it->code_follows && it->numbers.contains(&memory) ? &*it : nullptr;
}

void FunctionRecorder::check_version(Record& record, const Slot& slot) {
  const Packed* const packed = slot.packed();
  const Storage* memory = packed         ? packed->aliased.get()
                          : slot.value() ? slot.value()->storage().get()
                                         : nullptr;
  if (!memory) return;
  const TensorType type = packed ? packed->type : slot.value()->type();
  for (const FunctionRecorder* recorder :
       {static_cast<const FunctionRecorder*>(forward_), static_cast<const FunctionRecorder*>(this)}) {
    const Epoch* const epoch = recorder ? recorder->epoch_of(record, *memory) : nullptr;
    if (!epoch) continue;
    const ir::ValueId operands[] = {value_of(epoch->versions)};
    emit_host(host::check_version, operands,
              RefPtr<HostCode>::adopt(new CheckVersionCode(record, slot, type, epoch->numbers.at(memory))),
              record.where());
  }
}

}  // namespace retrograd
