// See hooks/loop/schedule.h.
#include "hooks/loop/schedule.h"

#include <algorithm>

namespace retrograd::inline v0 {

LoopSchedule::LoopSchedule(int64_t slots)
    : slots_(slots),
      most_rows_(std::min(kMostRows, kMostEntries / (std::min(slots, kMostSlots) + 1))),
      columns_(static_cast<size_t>(std::min(slots, kMostSlots) + 1)) {}

int64_t LoopSchedule::in_hand(int64_t steps, int64_t free) {
  if (steps <= free + 1) return steps;  // each step is recorded once
  if (free == 0) return kNever;
  const int64_t factor = scale(steps), rows = (steps + factor - 1) / factor;
  return factor * column(rows, free).in_hand[static_cast<size_t>(rows)];
}

int64_t LoopSchedule::in_slot(int64_t steps, int64_t free) {
  if (steps <= 1) return steps;
  const int64_t factor = scale(steps), rows = (steps + factor - 1) / factor;
  return factor * column(rows, free).in_slot[static_cast<size_t>(rows)];
}

int64_t LoopSchedule::from_slot(int64_t steps, int64_t free) {
  if (steps <= free + 2) return steps;
  return std::min(in_slot(steps, free), in_hand(steps, free + 1));
}

bool LoopSchedule::leaves_slot(int64_t steps, int64_t free) {
  return steps == 1 || records_step(steps, free + 1);
}

int64_t LoopSchedule::advance(int64_t steps, int64_t free) {
  if (free == 0) return steps - 1;
  const int64_t factor = scale(steps), rows = (steps + factor - 1) / factor;
  if (rows == 1) return 1;
  return std::min(steps - 1, factor * column(rows, free).advance[static_cast<size_t>(rows)]);
}

bool LoopSchedule::records_step(int64_t steps, int64_t free) {
  if (steps <= free + 1) return true;
  return 1 + in_hand(steps - 1, free - 1) <= in_slot(steps, free - 1);
}

// As the reversal does it: see LoopReversal::descend().
int64_t LoopSchedule::executions(int64_t steps) {
  std::vector<Held> held{{0, false}};
  const auto free = [&] { return slots_ - static_cast<int64_t>(held.size()); };
  int64_t executed = 0;
  for (int64_t end = steps; end > 0;) {
    const Held top = held.back();
    if (top.step == end || (top.step == end - 1 && top.is_recorded)) {
      end = top.step;
      held.pop_back();
      continue;
    }
    int64_t at = top.step;
    if (leaves_slot(end - at, free())) {
      held.pop_back();
    } else if (end - at > 1) {
      at += advance(end - at, free());
      executed += at - top.step;
    }
    for (; end - at > 1 && records_step(end - at, free()); ++at, ++executed) held.push_back({at, true});
    if (end - at == 1)
      ++executed, --end;
    else
      held.push_back({at, false});
  }
  return executed;
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

const LoopSchedule::Column& LoopSchedule::column(int64_t steps, int64_t free) {
  while (static_cast<int64_t>(columns_[0].in_slot.size()) <= steps)
    for (int64_t k = 0; k < static_cast<int64_t>(columns_.size()); ++k) append(k);
  return columns_[static_cast<size_t>(std::min<int64_t>(free, static_cast<int64_t>(columns_.size()) - 1))];
}

// The columns to the left have their entry for this number of steps already. The last column stands for all numbers of
// free slots from its own on.
void LoopSchedule::append(int64_t free) {
  constexpr size_t kAround = 64;
  const auto place = static_cast<size_t>(free);
  Column& own = columns_[place];
  const Column& right = columns_[std::min(place + 1, columns_.size() - 1)];
  const size_t steps = own.in_slot.size();
  if (steps < 2) {
    own.in_hand.push_back(static_cast<uint32_t>(steps));
    own.in_slot.push_back(static_cast<uint32_t>(steps));
    own.advance.push_back(1);
    return;
  }
  const size_t nearest = own.advance.back(), last = std::min(steps - 1, nearest + kAround);
  const size_t first = free == 0 ? last : nearest > kAround ? nearest - kAround : 1;
  const auto cost = [&](size_t i) {
    return static_cast<uint32_t>(i) + own.in_hand[steps - i] + std::min(own.in_slot[i], right.in_hand[i]);
  };
  uint32_t least = kNoCost;
  for (size_t i = first; i <= last; ++i) least = std::min(least, cost(i));
  size_t best = first;
  while (cost(best) != least) ++best;
  uint32_t in_hand = kNoCost;
  if (free > 0) {
    const Column& left = columns_[place - 1];
    in_hand = std::min(1 + left.in_hand[steps - 1], left.in_slot[steps]);
  }
  own.in_slot.push_back(least);
  own.advance.push_back(static_cast<uint16_t>(best));
  own.in_hand.push_back(in_hand);
}

}  // namespace retrograd
