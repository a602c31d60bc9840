// See hooks/loop/slots.h.
#include "hooks/loop/slots.h"

#include <algorithm>
#include <utility>

namespace retrograd::inline v0 {

std::vector<LoopSchedule::Held> LoopSlots::held() const {
  std::vector<LoopSchedule::Held> held;
  for (const Slot& slot : slots_) held.push_back({slot.at.step, slot.tape.has_value()});
  return held;
}

void LoopSlots::push(StepState at, std::optional<StepTape> tape) {
  make_room();
  slots_.push_back({std::move(at), std::move(tape), -1, {}});
  if (in_memory() > options_.slots) write(slots_.back());
}

int64_t LoopSlots::in_memory() const { return std::ranges::count(slots_, -1, &Slot::place); }

void LoopSlots::make_room() {
  if (in_memory() < options_.slots || slots_.size() < 2) return;
  const auto in_memory = [](const Slot& slot) { return slot.place < 0; };
  auto lowest = std::find_if(slots_.begin() + 1, slots_.end(),
                             [&](const Slot& slot) { return in_memory(slot) && !slot.tape; });
  if (lowest == slots_.end()) lowest = std::find_if(slots_.begin() + 1, slots_.end(), in_memory);
  if (lowest != slots_.end()) write(*lowest);
}

void LoopSlots::write(Slot& slot) {
  if (!file_) file_ = std::make_unique<ScratchFile>(options_.folder);
  if (places_.empty()) places_.push_back(std::ranges::max(slots_, {}, &Slot::place).place + 1);
  int64_t bytes = 0, done = 0;
  for (const Tensor& t : slot.at.state) bytes += t.nbytes();
  for (const Tensor& t : slot.at.state) {
    file_->write(places_.back() * bytes + done, t);
    done += t.nbytes();
    slot.types.push_back(t.impl().type());
  }
  slot.place = places_.back();
  places_.pop_back();
  slot.tape.reset();
  slot.at.state.clear();
  ++loop_counters.states_written;
}

StepState LoopSlots::top_state() {
  const Slot& slot = slots_.back();
  if (slot.place < 0) return slot.at;
  StepState at = slot.at;
  int64_t bytes = 0, done = 0;
  for (const TensorType& type : slot.types) bytes += type.shape.numel().value() * element_size(type.dtype);
  for (const TensorType& type : slot.types) {
    at.state.push_back(file_->read(slot.place * bytes + done, type));
    at.versions[at.state.size() - 1] = at.state.back().version();
    done += at.state.back().nbytes();
  }
  ++loop_counters.states_read;
  return at;
}

void LoopSlots::release(Slot& slot) {
  if (slot.place >= 0) places_.push_back(slot.place);
}

void LoopSlots::pop() {
  release(slots_.back());
  slots_.pop_back();
}

void LoopSlots::drop(size_t i) {
  if (i < slots_.size()) {
    release(slots_[i]);
    slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  slots_[i - 1].tape.reset();
}

void LoopSlots::clear() {
  slots_.clear();
  places_.clear();
}

void LoopSlots::forget_first() {
  if (!slots_.empty() && !slots_.front().tape) slots_.front().at.state.clear();
}

void LoopSlots::set_first(StepState at) {
  if (slots_.empty()) return push(std::move(at));
  Slot& first = slots_.front();
  if (first.at.step == at.step && first.at.state.empty()) first.at = std::move(at);
}

}  // namespace retrograd
