// checkpoint: runs a function without keeping what its records save. The first of them that a backward needs makes it
// compute all of them again (PyTorch: torch.utils.checkpoint with use_reentrant=False).
//
//   Tensor y = checkpoint([&](const Tensor& x) { return block(x); }, x);
//   Tensor z = checkpoint([&] { return mm(gelu(mm(y, w1)), w2); });
//
// What is recomputed are the calls that the function made, not the function: it runs once, and no side effect is
// repeated. Random numbers are drawn again from the same place of the same stream. A recomputation ends at the last
// value that was saved ("early stop"). It happens once in each backward; after its unpack a value is dropped.
//
// Memory: until a backward, a region keeps the tensors that it read and did not make: parameters, inputs, constants
// made from host data, results of opaque code. These may not be written to before the backward
// (Error(version_mismatch)). Tensors that are passed as `inputs` count as saved values: they pass through the pair of
// saved-tensor hooks that is open around the region and, in a nested region, are recomputed with the outer one. What
// the function captures is kept as it is. A pair that is opened inside a region takes what is saved in its scope.
//
// Where gradients are off the function just runs. Captured backwards have the recomputation as nodes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "engine/saved_tensor_hooks.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class RecomputeGroup;
class RegionLog;

struct CheckpointOptions {
  /// Whether a recomputation ends at the last saved value, not after the last call.
  bool early_stop = true;
};

/// While in scope, overrides CheckpointOptions::early_stop of checkpoints on this thread. The innermost counts.
class CheckpointEarlyStopGuard {
 public:
  struct Setting {
    bool enabled;
  };
  explicit CheckpointEarlyStopGuard(bool enabled) : guard_(Setting{enabled}) {}

 private:
  OpenScopes<Setting>::Guard guard_;
};

/// While in scope, eager backwards of this thread share recomputations: for several backwards through one checkpoint
/// that need different saved values of it. What was recomputed for the first and is not used yet is kept until the scope
/// ends; a value that is needed twice is recomputed twice. Captured backwards recompute for themselves.
/// Error(bad_argument) in the scope of another. (PyTorch: torch.utils.checkpoint.GraphExecGroup)
class GraphExecGroup {
 public:
  explicit GraphExecGroup(SourceLocation where = SourceLocation::current());
  ~GraphExecGroup();
  GraphExecGroup(const GraphExecGroup&) = delete;

 private:
  std::unique_ptr<RecomputeGroup> group_;
};

/// Counted since the process began.
struct RecomputeStats {
  int64_t regions = 0;  // checkpoints and outermost scopes of policies, also while a function is recorded
  int64_t calls = 0;    // of ops, made in a region
  int64_t calls_recomputed = 0;  // in eager and captured backwards
};
RecomputeStats recompute_stats();

namespace detail {
class CheckpointScope {
 public:
  CheckpointScope(const CheckpointOptions& options, SourceLocation where);
  ~CheckpointScope();
  CheckpointScope(const CheckpointScope&) = delete;
  void pass(const Tensor& input);
  template <class T>
  void pass(const std::vector<T>& inputs) {
    for (const T& input : inputs) pass(input);
  }
  template <class T>
  void pass(const std::optional<T>& input) {
    if (input) pass(*input);
  }
  template <class... T>
  void pass(const std::tuple<T...>& inputs) {
    std::apply([this](const T&... input) { (pass(input), ...); }, inputs);
  }
  template <class T>
  void pass(const T&) {}
  /// The function has returned.
  void close();

 private:
  std::unique_ptr<RegionLog> log_;  // null: nothing is recomputed
};

template <class Run, class Inputs>
auto checkpointed(Run&& run, const Inputs& inputs, const CheckpointOptions& options, SourceLocation where) {
  CheckpointScope scope(options, where);
  scope.pass(inputs);
  if constexpr (std::is_void_v<std::invoke_result_t<Run&>>) {
    run();
    scope.close();
  } else {
    auto results = run();
    scope.close();
    return results;
  }
}
}  // namespace detail

/// f(inputs), with any type of inputs and results. Tensors among the inputs are found in vectors, tuples and optionals.
template <class F, class Inputs>
requires std::is_invocable_v<F&, const Inputs&>
auto checkpoint(F&& f, const Inputs& inputs, const CheckpointOptions& options = {},
                SourceLocation where = SourceLocation::current()) {
  return detail::checkpointed([&] { return std::invoke(f, inputs); }, inputs, options, where);
}
/// f(a, b, ...) for inputs (a, b, ...).
template <class F, class... Inputs>
requires std::is_invocable_v<F&, const Inputs&...>
auto checkpoint(F&& f, const std::tuple<Inputs...>& inputs, const CheckpointOptions& options = {},
                SourceLocation where = SourceLocation::current()) {
  return detail::checkpointed([&] { return std::apply(f, inputs); }, inputs, options, where);
}
template <class F>
requires std::is_invocable_v<F&>
auto checkpoint(F&& f, const CheckpointOptions& options = {},
                SourceLocation where = SourceLocation::current()) {
  return detail::checkpointed([&] { return std::invoke(f); }, std::tuple<>(), options, where);
}

/// Applies the functions in turn, in `segments` regions of about equal length. As in PyTorch the last segment is no
/// region: its values are needed first. Error(bad_argument) unless 1 <= segments <= functions.size().
Tensor checkpoint_sequential(const std::vector<std::function<Tensor(const Tensor&)>>& functions,
                             int64_t segments, Tensor input, const CheckpointOptions& options = {},
                             SourceLocation where = SourceLocation::current());

}  // namespace retrograd
#pragma GCC visibility pop
