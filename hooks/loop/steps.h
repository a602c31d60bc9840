// LoopSteps: single steps of a checkpoint_loop: executed, recorded, and reversed.
//
// A state is a snapshot before a step: its tensors, their versions, and the position of the random stream. The body may
// not write to it; writes are noticed at its next use.
// A recorded step is a tape of its own, from leaves that share the memory of the state to the results.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "engine/random.h"
#include "hooks/checkpoint_loop.h"

namespace retrograd::inline v0 {

/// What the user gave.
struct LoopCode {
  detail::LoopBody body;
  detail::LoopCondition more;  // empty: there are `steps` steps
  int64_t steps = 0;
  CheckpointLoopOptions options;
  SourceLocation where;
};

struct StepState {
  int64_t step = 0;
  Tensors state;
  std::vector<uint32_t> versions;
  GeneratorState random;
};

struct StepTape {
  Tensors leaves, results;
};

struct LoopCounters {
  std::atomic<int64_t> steps{0}, reversed{0}, states_written{0}, states_read{0};
};
inline constinit LoopCounters loop_counters;

class LoopSteps {
 public:
  explicit LoopSteps(std::shared_ptr<const LoopCode> code) : code_(std::move(code)) {}

  const LoopCode& code() const { return *code_; }
  /// The state before step `step`; the random stream is where it is now.
  StepState snapshot(int64_t step, const Tensors& state) const;
  /// The results of a step.
  Tensors execute(const StepState& at) const;
  StepTape record(const StepState& at) const;
  /// The loop as written: its last state.
  Tensors run_all(Tensors state) const;
  /// The gradients of the leaves, then those of the parameters with these numbers.
  Tensors reverse(const StepTape& tape, const Tensors& grads, const std::vector<size_t>& parameters) const;
  /// The gradients of the initial state and of all parameters, from one tape of `steps` steps, which can be
  /// differentiated. The random stream is where it was before step 0.
  Tensors reverse_all(Tensors initial, int64_t steps, const Tensors& grads) const;

 private:
  Tensors call_body(const Tensors& state, int64_t step) const;
  void check_unchanged(const StepState& at) const;
  void check_results(const Tensors& state, const Tensors& results) const;
  void check_leaves(const StepTape& tape, uint64_t first_record) const;

  const std::shared_ptr<const LoopCode> code_;
};

}  // namespace retrograd
