// LoopReversal: one run of a checkpoint_loop: its forward, and the backwards through it.
//
// The steps before `end_` are left to be reversed. While step end_ - 1 is not recorded, descend() goes on from the
// highest slot as the schedule says; when it is, in the highest slot or as `at_hand_`, it is reversed. The forward of a
// loop of known length is the first descend(). One of unknown length records every step, and drops what the schedule
// needs least when the slots are full. A further backward begins with the initial state again, and so does one after an
// exception.
// Threads: one backward at a time; others wait.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "hooks/loop/draws.h"
#include "hooks/loop/schedule.h"
#include "hooks/loop/slots.h"
#include "hooks/loop/steps.h"

namespace retrograd::inline v0 {

class LoopReversal {
 public:
  explicit LoopReversal(std::shared_ptr<const LoopCode> code);

  size_t parameter_count() const { return parameters_.state.size(); }
  /// Runs the loop. Returns the last state, without history.
  Tensors forward(const Tensors& initial);
  /// The gradients of the initial state, then those of all parameters (undefined: none, or not `wanted`), for gradients
  /// of the last state (undefined: zero). `wanted` has an entry for each parameter.
  Tensors backward(const Tensors& initial, const Tensors& last, const std::vector<bool>& wanted);
  /// The same for a backward that is differentiated again.
  Tensors differentiable_backward(const Tensors& initial, const Tensors& last);

 private:
  class DrawsAgain;

  Tensors run_known(StepState at);
  Tensors run_unknown(StepState at);
  void keep(StepState at, StepTape tape);
  void descend();
  StepState advance(StepState at, int64_t steps);
  void record_from(StepState at);
  StepTape record(const StepState& at);
  void set_draws(int64_t step);
  Tensors reverse_steps(Tensors grads, const std::vector<size_t>& parameters);
  void reset();

  const LoopSteps steps_;
  const StepState parameters_;  // as they were in the forward
  LoopSchedule schedule_;
  LoopSlots slots_;
  std::optional<StepTape> at_hand_;
  int64_t end_ = 0, count_ = 0;  // of steps
  StepDraws draws_;
  bool is_forward_ = false;
  std::mutex mutex_;
};

}  // namespace retrograd
