// LoopSchedule: which steps of a loop to execute again, so that all steps are reversed with the fewest executions.
//
// The memory is a number of slots. A slot holds the state before a step, or a step that was recorded for its backward.
// To reverse `steps` steps with `free` slots to spare:
//
//   in_hand(n, s)   the state before them is at hand and in no slot. The first step is recorded into a slot, or the
//                   state is put into one:   f(n, s) = min(1 + f(n - 1, s - 1), g(n, s - 1))
//   in_slot(n, s)   the state before them is in a slot. i steps are executed, those after them are reversed, then the
//                   first i from the same state, which may leave its slot:
//                   g(n, s) = min over i of  i + f(n - i, s) + min(g(i, s), f(i, s + 1))
//   f(n, s) = n for n <= s + 1: each step is recorded once. g(1, s) = 1.
//
// The costs are tabulated for growing n. The best i for n lies near that for n - 1, so an entry takes constant time.
// This is the "mixed" scheme of J. R. Maddison, "On the implementation of checkpointing with high-level algorithmic
// differentiation", SIAM J. Sci. Comput. 46 (2024); storing states only is Griewank's and Walther's Revolve.
//
// Limits: the tables have at most kMostEntries entries, of ten bytes, and kMostSlots + 1 columns. Of a longer loop the
// first cuts are those of a loop of fewer and longer steps: it takes about a tenth more than the fewest executions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace retrograd::inline v0 {

class LoopSchedule {
 public:
  static constexpr int64_t kMostEntries = int64_t{1} << 21, kMostRows = (int64_t{1} << 16) - 1;
  static constexpr int64_t kMostSlots = 1024;

  /// For `slots` slots in all, at least 1.
  explicit LoopSchedule(int64_t slots);

  /// The executed steps that reverse `steps` steps; kNever where that needs a slot and none is free.
  static constexpr int64_t kNever = int64_t{1} << 61;
  int64_t in_hand(int64_t steps, int64_t free);
  int64_t in_slot(int64_t steps, int64_t free);
  /// With the state in a slot, which it may leave.
  int64_t from_slot(int64_t steps, int64_t free);

  // ---- the choices that these costs take
  /// Whether a state leaves its slot before the steps after it are reversed: if the next one is then recorded.
  bool leaves_slot(int64_t steps, int64_t free);
  /// The steps to execute from a state that stays in its slot: 1 to steps - 1, for steps > 1.
  int64_t advance(int64_t steps, int64_t free);
  /// Whether the next step is recorded into a slot; else the state is put into one. steps > 1, free > 0.
  bool records_step(int64_t steps, int64_t free);
  /// The executions of a loop of `steps` steps that follows these choices, with all slots in memory.
  int64_t executions(int64_t steps);

  // ---- loops whose number of steps is not known in advance
  struct Held {
    int64_t step;
    bool is_recorded;  // the step, with the state before it
  };
  /// All slots are held, in order of their steps, and one more state or step wants one; step `end` is the next. Returns
  /// the index, not 0, of the one to drop so that reversing the steps before `end` would be cheapest. At each number of
  /// steps the total is at most about a tenth above that of a loop whose length is known, and a few per cent from five
  /// slots on.
  size_t least_needed(std::span<const Held> held, int64_t end);

 private:
  // Of one number of free slots, by number of steps.
  struct Column {
    std::vector<uint32_t> in_hand, in_slot;
    std::vector<uint16_t> advance;
  };
  static constexpr uint32_t kNoCost = uint32_t{1}
                                      << 31;  // of what is never chosen; above n (n + 1) / 2 of all rows
  const Column& column(int64_t steps, int64_t free);
  void append(int64_t free);
  /// The factor by which a loop of `steps` steps is too long for the tables.
  int64_t scale(int64_t steps) const { return (steps + most_rows_ - 1) / most_rows_; }

  const int64_t slots_, most_rows_;
  std::vector<Column> columns_;
};

}  // namespace retrograd
