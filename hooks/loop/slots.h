// LoopSlots: the slots of a checkpoint_loop, a stack of states and recorded steps in order of their steps.
//
// At most options.slots are in memory. When they are taken, the lowest state but the first goes to the file: it is
// needed last. A step that was recorded has no form in the file; where no state is left to be written, the lowest one
// becomes a state again.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hooks/loop/schedule.h"
#include "hooks/loop/scratch_file.h"
#include "hooks/loop/steps.h"

namespace retrograd::inline v0 {

class LoopSlots {
 public:
  explicit LoopSlots(const CheckpointLoopOptions& options) : options_(options) {}

  /// How many more there is room for.
  int64_t free() const { return options_.slots + options_.disk_slots - static_cast<int64_t>(slots_.size()); }
  /// The slots as the schedule sees them.
  std::vector<LoopSchedule::Held> held() const;

  void push(StepState at, std::optional<StepTape> tape = {});
  int64_t top_step() const { return slots_.back().at.step; }
  /// The recorded step of the highest slot; null if it holds a state.
  const StepTape* top_tape() const { return slots_.back().tape ? &*slots_.back().tape : nullptr; }
  StepState top_state();
  void pop();
  /// Drops slot i > 0, or, for i past the highest, one that was not pushed. A recorded step below it is of no use any
  /// more and becomes a state.
  void drop(size_t i);
  /// Empties all slots, and closes the file.
  void clear();
  /// Drops the state before step 0, which the caller keeps,
  void forget_first();
  /// and takes it back.
  void set_first(StepState at);

 private:
  struct Slot {
    StepState at;
    std::optional<StepTape> tape;
    int64_t place = -1;             // in the file, counted in states; -1: in memory
    std::vector<TensorType> types;  // in the file
  };
  int64_t in_memory() const;
  void make_room();
  void write(Slot& slot);
  void release(const Slot& slot);

  const CheckpointLoopOptions& options_;
  std::vector<Slot> slots_;
  std::unique_ptr<ScratchFile> file_;
  std::vector<int64_t> places_;  // those in the file that are free again,
  int64_t next_place_ = 0;       // and the first that was never used
};

}  // namespace retrograd
