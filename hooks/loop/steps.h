// LoopSteps: single steps of a checkpoint_loop: executed, recorded, and reversed.
//
// A state is a snapshot before a step: its tensors and their versions. The body may not write to it; writes are noticed
// at its next use.
// A recorded step is a tape of its own, from leaves that share the memory of the state to the results. Gradients go to
// the leaves and to the parameters, and end there: what a parameter was computed from belongs to the graph around the
// loop.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "engine/autocast.h"
#include "hooks/checkpoint_loop.h"

namespace retrograd::inline v0 {

/// What the user gave.
struct LoopCode {
  detail::LoopBody body;
  detail::LoopCondition more;  // empty: there are `steps` steps
  int64_t steps = 0;
  CheckpointLoopOptions options;  // no parameter is listed twice
  SourceLocation where;
  ScalarType autocast = detail::autocast_dtype();  // around the loop, for steps that are executed again

  /// Whether step `step` follows.
  bool goes_on(const Tensors& state, int64_t step) const { return more ? more(state, step) : step < steps; }
};

struct StepState {
  int64_t step = 0;
  Tensors state;
  std::vector<uint32_t> versions;

  StepState() = default;
  StepState(int64_t step, const Tensors& state);
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
  /// The loop as written: its last state.
  Tensors run_all(Tensors state) const;
  /// The same for a loop nothing of which requires a gradient. Error(bad_argument) if the body reads a tensor that
  /// does.
  Tensors run_constant(const Tensors& state) const;
  /// Error(version_mismatch) if a parameter was written to since `saved` was made of them.
  void check_parameters(const StepState& saved) const;
  /// The results of a step.
  Tensors execute(const StepState& at) const;
  StepTape record(const StepState& at) const;
  /// The gradients of the leaves, then those of the parameters with these numbers.
  Tensors reverse(const StepTape& tape, const Tensors& grads, const std::vector<size_t>& parameters) const;
  /// The gradients of the initial state and of all parameters from one tape of `steps` steps, which can be
  /// differentiated. before(step) is called before each of them.
  Tensors reverse_all(const Tensors& initial, int64_t steps, const Tensors& grads,
                      const std::function<void(int64_t)>& before) const;

 private:
  Tensors first_of_constant(const StepState& at) const;
  Tensors call_body(const Tensors& state, int64_t step) const;
  void check_unchanged(const StepState& at) const;
  void check_results(const Tensors& state, const Tensors& results) const;
  void check_leaves(const StepTape& tape, uint64_t first_record) const;
  Tensors gradients(const Tensors& results, const Tensors& grads, const Tensors& inputs,
                    bool create_graph) const;

  const std::shared_ptr<const LoopCode> code_;
};

}  // namespace retrograd
