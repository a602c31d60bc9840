// SavedRun: what a run of a differentiable function keeps for its backwards: the values that they need, with version
// checks.
//
// It is attached to the record that links the results to the arguments. A backward that does not retain the graph
// releases the values of the records that it traversed, as if these records were on the tape themselves.
#pragma once

#include <unordered_set>

#include "tracer/function/backwards.h"

namespace retrograd::inline v0 {

class SizedFunction;

/// Whether the gradients for these cotangents are differentiated again, in reverse or forward mode.
bool is_differentiated(std::span<TensorImpl* const> cotangents);

struct SavedRun final : SavedElsewhere {
  std::shared_ptr<SizedFunction> function;
  Tensors values;
  std::vector<uint32_t> versions;
  std::vector<ir::Binding> bindings;  // of the run, from which it can be replayed
  std::vector<uint32_t> binding_versions;
  std::vector<uint32_t> input_versions;  // of the tensors bound to the inputs, after the run
  std::vector<Number> numbers;
  Tensors precomputed;  // the gradients, if the forward computed them and no backward has used them

  ~SavedRun() override;
  bool has_functions() const override;
  void begin(bool released) override;
  /// Drops the values that the last backward unpacked, except those that other records need.
  void release() override;

  /// The inputs of a backward.
  struct Taken {
    // Computed by the forward, if they equal the result of the backward and this is the last one; else none.
    Tensors gradients;
    Tensors values;  // moved if they may be released and no other record needs them
    bool can_run;    // whether the backward has a plan, and all values of it are there as they were saved
  };
  /// Error(backward_twice_freed) or Error(version_mismatch) when `backward` can no longer run.
  Taken take(const FunctionBackward& backward, const Record& record, std::span<TensorImpl* const> cotangents);
  /// After the backward has thrown. `left`: of each of its inputs, what it had taken and not yet released. A record can be
  /// traversed again if all values that it needs are back.
  void give_back(const FunctionBackward& backward, const Tensors& left);
  /// Error(version_mismatch) when an input of the run has been written to, so that nothing can be recomputed from it.
  void check_inputs(SourceLocation where) const;

 private:
  // Require the mutex.
  void check(const FunctionBackward& backward, const Record& record) const;
  void check_input(size_t number, SourceLocation where) const;
  bool can_run(const FunctionBackward& backward) const;
  Tensors take_precomputed(const FunctionBackward& backward, std::span<TensorImpl* const> cotangents);
  Tensors take_values(const FunctionBackward& backward);
  void drop_precomputed();
  std::vector<bool> drop_unused();

  std::mutex mutex_;
  bool goes_ = false;                       // values may be released at their last use in the next backward
  const FunctionBackward* last_ = nullptr;  // the backward that ran last: the one to be released
  std::unordered_set<const Record*> released_;
  std::vector<const Record*> taken_;  // those of them that the last backward has released
};

}  // namespace retrograd
