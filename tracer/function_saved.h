// What tracer/function_*.cc share: the backward graphs of a recorded function, and what a run leaves for them.
#pragma once

#include <algorithm>
#include <set>

#include "tracer/function_capture.h"

namespace retrograd {

/// The graph from gradients of some ends to those of the inputs; or the error that recording it was.
struct FunctionCapture::Backward {
  RecordedFunction recorded;
  ir::Graph planned;
  std::vector<Source> sources;
  std::vector<Number> numbers;
  std::unique_ptr<Plan> plan;
  std::optional<Error> error;
  bool runs_code = false;  // of the user's: it may throw, and then values must still be there

  /// Whether its gradients depend on values of the forward.
  bool needs_forward() const {
    return !recorded.straight.empty() ||
           std::ranges::any_of(recorded.inputs, [](const auto& input) { return input.saved >= 0; });
  }
};

/// Whether what these cotangents give is differentiated again, backwards or in forward mode.
bool is_differentiated(std::span<TensorImpl* const> cotangents);

/// What a run leaves for its backwards.
struct FunctionCapture::Saved final : SavedElsewhere {
  std::shared_ptr<FunctionCapture> capture;
  Tensors values;
  std::vector<uint32_t> versions;
  std::vector<ir::Binding> bindings;  // of the run, for gradients that are differentiated again
  std::vector<uint32_t> binding_versions;
  std::vector<uint32_t> input_versions;  // of what the inputs were bound to, when the run was over
  std::vector<Number> numbers;
  std::mutex mutex;
  bool goes = false;               // values may go with their last use in the next backward
  const Backward* last = nullptr;  // that ran: the one to be released
  std::set<const Record*> released;
  Tensors ahead;  // the gradients, if the forward has computed them and no backward has come for them

  ~Saved() override;
  bool has_functions() const override { return capture->has_functions_; }
  void begin(bool released) override;
  /// Drops what the last backward has unpacked, save for what other records need.
  void release() override;
  /// The values for a run of `backward`, handed over if they may go, no other record needs them, and nothing in the run will throw.
  Tensors take(const Backward& backward);
  /// The gradients that the forward has computed, if they are what `backward` would give for the last time; else none.
  Tensors take_ahead(const Backward& backward, std::span<TensorImpl* const> cotangents);
  void keep_ahead(const Tensors& outputs);
  void drop_ahead();
  /// Error(backward_twice_freed) or Error(version_mismatch) when `backward` can no longer run.
  void check(const Backward& backward, const Record& record) const;
  // The values that only records already released have asked for. With both mutexes locked.
  std::vector<bool> find_unused() const;
  /// Error(version_mismatch) when the run cannot be computed anew.
  void check_inputs(SourceLocation where) const;
};

}  // namespace retrograd
