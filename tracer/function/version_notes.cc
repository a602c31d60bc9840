// See tracer/function/version_notes.h.
#include "tracer/function/version_notes.h"

#include <algorithm>

#include "tracer/function/function_recorder.h"
#include "tracer/function/opaque_value.h"

namespace retrograd::inline v0 {
namespace {

struct Versions {
  std::vector<RefPtr<Storage>> memory;
  std::vector<uint32_t> versions;
  std::vector<TensorType> types;
};

class NoteVersionsCode final : public HostCode {
 public:
  NoteVersionsCode() { types = {opaque_value_type()}; }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    auto noted = std::make_shared<Versions>();
    for (const TensorImpl* x : operands) {
      noted->memory.push_back(x->storage());
      noted->versions.push_back(x->storage()->version());
      noted->types.push_back(x->type());
    }
    results[0] = make_opaque_value(std::move(noted));
  }
};

class CheckVersionCode final : public HostCode {
 public:
  CheckVersionCode(Record& record, const Slot& slot, TensorType type, size_t number)
      : record_(&record), slot_(&slot), type_(std::move(type)), number_(number) {
    types = {opaque_value_type()};
  }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    const auto& noted = *static_cast<const Versions*>(opaque_content(*operands[0]).get());
    const Storage& memory = *noted.memory[number_];
    if (memory.version() != noted.versions[number_])
      fail_version(*record_, *slot_, memory, type_.shape.is_symbolic() ? noted.types[number_] : type_,
                   noted.versions[number_]);
    results[0] = seen(*operands[0]);
  }
  // The recomputed forward has values of its own.
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

void VersionNotes::note_call(const Call& call) {
  if (!call.op->saves || !GradMode::is_enabled()) return;
  for (const TensorImpl* x : call.operands)
    if (x && x->storage()) read_since_code_.insert(x->storage().get());
}

void VersionNotes::note(Inputs inputs, bool code_follows) {
  std::ranges::stable_sort(inputs, {}, &Inputs::value_type::second);
  Epoch epoch{of_.forward() ? of_.first_sequence() : next_sequence(), code_follows, {}, {}};
  std::vector<ir::ValueId> operands;
  for (const auto& [memory, value] : inputs)
    if (epoch.numbers.try_emplace(memory, operands.size()).second) operands.push_back(value);
  if (!operands.empty()) {
    auto code = RefPtr<HostCode>::adopt(new NoteVersionsCode);
    epoch.versions = of_.memory().computed(opaque_value_type(),
                                           of_.host().emit(ops::note_versions, operands, std::move(code)));
  }
  epochs_.push_back(std::move(epoch));
}

void VersionNotes::note_walk(const Walk& walk) {
  Inputs inputs;
  for (const Walk::Item& item : walk.order())
    for (int i = 0; i < item.record->slots; ++i) {
      TensorImpl* const value = item.record->slot(i).value();
      const RecordedMemory& memory = of_.forward()->memory();
      const Root* const root = value && value->storage() ? memory.find(value->storage().get()) : nullptr;
      if (!root || memory.value_outside(*root) == ir::kNoValue) continue;
      inputs.emplace_back(value->storage().get(), of_.value_of(Tensor(RefPtr<TensorImpl>(value))));
    }
  note(std::move(inputs), /*code_follows=*/false);
}

void VersionNotes::code_follows() {
  for (size_t i = epochs_.size(); i-- > 0 && !epochs_[i].code_follows;) epochs_[i].code_follows = true;
}

void VersionNotes::note_read() {
  Inputs inputs;
  for (const Root* root : of_.memory().roots()) {
    if (!read_since_code_.contains(root->storage.get())) continue;
    const ir::ValueId value = of_.memory().value_outside(*root);
    if (value != ir::kNoValue)
      inputs.emplace_back(root->storage.get(), root->is_written ? root->value : value);
  }
  read_since_code_.clear();
  note(std::move(inputs), /*code_follows=*/true);
}

// The epoch in which the record was made, if it is over; null if it is not, or if nothing was noted of this memory.
const VersionNotes::Epoch* VersionNotes::find(const Record& record, const Storage& memory) const {
  const auto it = std::ranges::upper_bound(epochs_, record.seq, {}, &Epoch::end);
  return it != epochs_.end() && it->code_follows && it->numbers.contains(&memory) ? &*it : nullptr;
}

// Checks the versions noted by the forward, then those noted by this backward.
void VersionNotes::check(Record& record, const Slot& slot) {
  const Storage* const memory = slot.memory();
  if (!memory) return;
  const TensorType type = slot.packed() ? slot.packed()->type : slot.value()->type();
  const VersionNotes* const of_forward = of_.forward() ? &of_.forward()->host().versions() : nullptr;
  for (const VersionNotes* notes : {of_forward, static_cast<const VersionNotes*>(this)}) {
    const Epoch* const epoch = notes ? notes->find(record, *memory) : nullptr;
    if (!epoch) continue;
    const ir::ValueId operands[] = {of_.value_of(epoch->versions)};
    auto code = RefPtr<HostCode>::adopt(new CheckVersionCode(record, slot, type, epoch->numbers.at(memory)));
    of_.host().emit(ops::check_version, operands, std::move(code), record.where());
  }
}

}  // namespace retrograd
