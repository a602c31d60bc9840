// FunctionCapture: what calling a function for a recording gave.
//
//   RecordedFunction   its graph, in which sizes of arguments may be symbols            recorded_function.h
//   ArgumentSizes      which they are                                                   argument_sizes.h
//   FunctionGuards     what it depends on                                               guards.h
//   FunctionResults    how its results are put together                                 results.h
//   OptimisedFunction  the graph after the passes, if sizes are symbols                 optimised_function.h
//   RecordedTape       of a differentiable function: its backwards are recorded from it     backwards.h
//
// It runs as a SizedFunction, one for each set of sizes. A function is not recorded if user code called in a run keeps
// its tensors: kept_values.h. Immutable except for the numbers that the recording read, which its first run settles.
#pragma once

#include <memory>
#include <mutex>

#include "tracer/function/argument_sizes.h"
#include "tracer/function/backwards.h"
#include "tracer/function/compile.h"
#include "tracer/function/guards.h"
#include "tracer/function/optimised_function.h"
#include "tracer/function/results.h"

namespace retrograd::inline v0 {

/// Which sizes of the arguments become symbols in a recording. varied: those that differ from an earlier capture's
/// call, and its symbols; as_before: its symbols.
enum class SizeSymbols : uint8_t { none, varied, as_before, all };

class FunctionCapture;

struct SizeRequest {
  SizeSymbols symbols = SizeSymbols::none;
  std::shared_ptr<const FunctionCapture> before = {};  // the earlier capture; its call differed in sizes only
  LiveSizes live = {};                                 // as_before: those of the earlier capture instead
};

class FunctionCapture {
 public:
  /// Records the function for arguments like these. `known`: the known calls of its opaque functions; throws
  /// DryRunNeeded if one is missing, LiveSizeNeeded for a live number that is a size and not among those of `symbols`.
  FunctionCapture(const FunctionBody& body, const Tensors& arguments, CallGuard guard, FunctionKind kind,
                  const KnownCalls* known, const SizeRequest& symbols, PairForm pairs, SourceLocation where);
  ~FunctionCapture();
  FunctionCapture(const FunctionCapture&) = delete;

  FunctionKind kind() const { return kind_; }
  SourceLocation where() const { return where_; }  // of the call that was recorded
  const RecordedFunction& recorded() const { return recorded_; }
  const FunctionGuards& guards() const { return guards_; }
  /// The tensors that it needs and does not hold itself; nothing if one is gone. A call holds them until it is over.
  std::optional<OutsideTensors::Pins> pin() const { return recorded_.outside->pin(); }
  /// What is gone, and where it was captured.
  std::string gone() const;
  /// The calls of opaque functions that it was recorded with; null if none were known.
  const KnownCalls* known() const { return known_ ? &*known_ : nullptr; }
  const ArgumentSizes& sizes() const { return sizes_; }
  /// Of a function whose sizes are symbols: the graphs for all sizes. Null before choose().
  const OptimisedFunction* optimised() const;
  /// After the function has been planned for the sizes of the recording.
  void choose(BackwardChoices choices) { choices_ = std::move(choices); }
  const FunctionResults& results() const { return results_; }
  /// Null if it is not differentiable.
  const RecordedTape* tape() const { return tape_.get(); }
  /// Of its results: see CallOutcome.
  const std::shared_ptr<const void>& form() const { return form_; }
  /// Whether a run calls user code: hooks, opaque functions, pairs.
  bool calls_code() const { return calls_code_; }
  PairForm pairs() const { return pairs_; }
  /// Whether traceable pairs have packed values of it.
  bool has_traceable_pairs() const { return has_traceable_pairs_; }

  /// If sizes are symbols: the values of all expressions of the graph in a call. No vector, with the reason, if the
  /// capture does not serve the call.
  std::optional<std::vector<Number>> fit(const CallGuard& call, const Tensors& arguments,
                                         std::string& misfit) const;
  /// The backwards that were recorded with it, at the sizes of the recording; none if they were taken before.
  RecordedBackwards take_backwards() {
    return are_taken_.test_and_set() ? RecordedBackwards() : std::move(first_backwards_);
  }
  /// Settles the numbers that the recording read if no run will use them.
  void settle_recorded() noexcept;
  /// The first run uses, and settles, the numbers that the recording read.
  void give_numbers_to_run() { numbers_are_open_ = false; }

 private:
  static ArgumentSizes sizes_of(const SizeRequest& request, const std::vector<TensorGuard>& given,
                                SymbolTable& table);
  void record(const FunctionBody& body, const Tensors& arguments, const KnownCalls* known);
  static void check_argument_hooks(const FunctionInputs& inputs);

  const FunctionKind kind_;
  const SourceLocation where_;
  const PairForm pairs_;
  const std::optional<KnownCalls> known_;
  RecordedFunction recorded_;
  ArgumentSizes sizes_;
  FunctionGuards guards_;
  FunctionResults results_;
  std::unique_ptr<RecordedTape> tape_;
  RecordedBackwards first_backwards_;
  std::atomic_flag are_taken_;
  std::optional<BackwardChoices> choices_;
  mutable std::once_flag optimised_once_;
  mutable std::optional<OptimisedFunction> optimised_;
  std::shared_ptr<const void> form_;
  bool calls_code_ = false, has_traceable_pairs_ = false;
  bool numbers_are_open_ = true;
};

}  // namespace retrograd
