// See hooks/loop/slots.h.
#include "hooks/loop/slots.h"

#include <algorithm>
#include <utility>

#include "engine/shape.h"

namespace retrograd::inline v0 {
namespace {

int64_t bytes_of_state(const std::vector<TensorType>& types) {
  int64_t bytes = 0;
  for (const TensorType& type : types) bytes += bytes_of(type);
  return bytes;
}

}  // namespace

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
  if (places_.empty()) places_.push_back(next_place_++);
  std::vector<TensorType> types;
  for (const Tensor& t : slot.at.state) types.push_back(t.impl().type());
  int64_t at = places_.back() * bytes_of_state(types);
  for (const Tensor& t : slot.at.state) {
    file_->write(at, t);
    at += t.nbytes();
  }
  slot.types = std::move(types);
  slot.place = places_.back();
  places_.pop_back();
  slot.tape.reset();
  slot.at.state.clear();
  ++loop_counters.states_written;
}

StepState LoopSlots::top_state() {
  const Slot& slot = slots_.back();
  if (slot.place < 0) return slot.at;
  int64_t at = slot.place * bytes_of_state(slot.types);
  Tensors state;
  for (const TensorType& type : slot.types) {
    state.push_back(file_->read(at, type));
    at += bytes_of(type);
  }
  ++loop_counters.states_read;
  return StepState(slot.at.step, state);
}

void LoopSlots::release(const Slot& slot) {
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
  next_place_ = 0;
  file_.reset();
}

void LoopSlots::forget_first() {
  if (!slots_.empty() && !slots_.front().tape && slots_.front().at.step == 0) slots_.front().at.state.clear();
}

void LoopSlots::set_first(StepState at) {
  if (slots_.empty()) return push(std::move(at));
  Slot& first = slots_.front();
  if (first.at.step == 0 && first.at.state.empty()) first.at = std::move(at);
}

}  // namespace retrograd
