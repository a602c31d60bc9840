// See hooks/loop/schedule.h.
#include "hooks/loop/schedule.h"

#include <algorithm>
#include <cstddef>

namespace retrograd::inline v0 {

LoopSchedule::LoopSchedule(int64_t slots)
    : slots_(slots),
      columns_(std::min(slots, kMostSlots) + 1),
      most_rows_(kMostEntries / columns_),
      nearest_(static_cast<size_t>(columns_), 1) {}

int64_t LoopSchedule::in_hand(int64_t steps, int64_t free) {
  if (steps <= free + 1) return steps;  // each step is recorded once
  if (free == 0) return kNever;
  const int64_t factor = scale(steps);
  return factor * entry((steps + factor - 1) / factor, free).in_hand;
}

int64_t LoopSchedule::in_slot(int64_t steps, int64_t free) {
  if (steps <= 1) return steps;
  const int64_t factor = scale(steps);
  return factor * entry((steps + factor - 1) / factor, free).in_slot;
}

int64_t LoopSchedule::from_slot(int64_t steps, int64_t free) {
  return std::min(in_slot(steps, free), in_hand(steps, free + 1));
}

bool LoopSchedule::leaves_slot(int64_t steps, int64_t free) {
  return steps == 1 || records_step(steps, free + 1);
}

int64_t LoopSchedule::advance(int64_t steps, int64_t free) {
  if (free == 0) return steps - 1;
  const int64_t factor = scale(steps);
  return std::min(steps - 1, factor * entry((steps + factor - 1) / factor, free).advance);
}

bool LoopSchedule::records_step(int64_t steps, int64_t free) {
  return 1 + in_hand(steps - 1, free - 1) <= in_slot(steps, free - 1);
}

// Dropping slot `gone` joins its steps to those of the slot before, and gives the slots above it one more free slot.
size_t LoopSchedule::least_needed(std::span<const Held> held, int64_t end) {
  const auto reverse = [&](size_t k, int64_t until, size_t depth) {
    const int64_t steps = until - held[k].step;
    if (steps == 1 && held[k].is_recorded) return int64_t{0};
    return from_slot(steps, slots_ - 1 - static_cast<int64_t>(depth));
  };
  const auto end_of = [&](size_t k) { return k + 1 < held.size() ? held[k + 1].step : end; };
  int64_t above = 0;  // the cost of the slots above `gone` without it, less that of the same slots with it
  size_t best = held.size() - 1;
  int64_t least = kNever;
  for (size_t gone = held.size() - 1; gone > 0; --gone) {
    const int64_t below =
        reverse(gone - 1, end_of(gone), gone - 1) - reverse(gone - 1, held[gone].step, gone - 1);
    const int64_t own = reverse(gone, end_of(gone), std::min(gone, static_cast<size_t>(slots_ - 1)));
    if (const int64_t change = below - own + above; change < least) least = change, best = gone;
    above += reverse(gone, end_of(gone), gone - 1) - own;
  }
  return best;
}

const LoopSchedule::Entry& LoopSchedule::entry(int64_t steps, int64_t free) {
  while (static_cast<int64_t>(table_.size()) < steps * columns_) append_row();
  return table_[static_cast<size_t>((steps - 1) * columns_ + std::min(free, columns_ - 1))];
}

void LoopSchedule::append_row() {
  const int64_t steps = static_cast<int64_t>(table_.size()) / columns_ + 1;
  for (int64_t free = 0; free < columns_; ++free) append_entry(steps, free);
}

void LoopSchedule::append_entry(int64_t steps, int64_t free) {
  constexpr int32_t kAround = 64;
  if (steps == 1) return table_.push_back({1, 1, 0});
  int32_t& nearest = nearest_[static_cast<size_t>(free)];
  Entry made{kNever, kNever, 1};
  const auto last = static_cast<int32_t>(std::min<int64_t>(steps - 1, nearest + kAround));
  for (int32_t i = std::max(1, nearest - kAround); i <= last; ++i) {
    const Entry& first = entry(i, free);
    const int64_t leaving = entry(i, free + 1).in_hand;
    const int64_t cost = i + entry(steps - i, free).in_hand + std::min(first.in_slot, leaving);
    if (cost < made.in_slot) made.in_slot = cost, made.advance = i;
  }
  nearest = made.advance;
  if (free > 0) made.in_hand = std::min(1 + entry(steps - 1, free - 1).in_hand, table_.back().in_slot);
  table_.push_back(made);
}

}  // namespace retrograd
