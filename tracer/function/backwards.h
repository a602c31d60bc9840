// The backwards of a recorded function.
//
//   RecordedTape       the tape made by the recording, from which backwards are recorded
//   FunctionBackward   the graph from gradients of some results to those of the operands, and its plan
//   FunctionBackwards  all of them for one set of sizes, and the saved values that they recompute
//
// The tape may have symbols as sizes. The table of a backward's graph begins as a copy of the forward's, with the sizes
// of a call as values. The first backward, for all results, is kept with its symbols: at other sizes numbers take their
// place. Other backwards, and all if a guard of the first one fails, are recorded from the tape for one set of sizes.
// A backward graph is recorded for each set of results that have a gradient; the first, for all of them, decides what
// is saved. An error while recording a backward is thrown when the backward runs.
// Values that are cheap to recompute from memory kept anyway are not saved (ir/passes/recompute_saved.h), unless that
// raises the peak. With a memory budget, joint_plan.cc decides what is saved and recomputed; backwards for other
// results have no plan then, but are replayed with the forward.
// Start reading at RecordedTape::record_backwards(), then FunctionBackwards::find().
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "tracer/function/function_recorder.h"
#include "tracer/function/optimised_function.h"
#include "tracer/function/results.h"
#include "tracer/plan/plan.h"

namespace retrograd::inline v0 {

struct FunctionBackward {
  RecordedFunction recorded;
  ir::Graph planned;
  std::vector<RecordedFunction::Input> inputs;  // of `planned`
  std::vector<Number> numbers;
  std::unique_ptr<Plan> plan;  // null: the recorded graphs of forward and backward are replayed
  std::optional<Error> error;

  /// Whether its gradients depend on values of the forward.
  bool needs_forward() const;
};

/// How a backward reaches a result: not at all, with a gradient, or without one; user functions run in either case of
/// reach.
enum class Arrival : uint8_t { none, without_gradient, with_gradient };
using Arrivals = std::vector<Arrival>;
using RecordedBackwards = std::map<Arrivals, std::unique_ptr<FunctionBackward>>;

class RecordedTape {
 public:
  explicit RecordedTape(std::unique_ptr<FunctionRecorder> recorder) : recorder_(std::move(recorder)) {}

  FunctionRecorder& recorder() const { return *recorder_; }
  /// The operands of the record that a run makes: arguments that require a gradient, bases that were written to,
  /// leaves from outside, leaves that the function makes. Leaves that the function makes become results.
  void find_operands(FunctionResults& results);
  /// Whether user functions are on the tape.
  void find_functions(const FunctionResults& results);

  /// Records the backward for all results, or, if that is an error, one for each result: then all values to save are
  /// known. At the sizes of the recording.
  RecordedBackwards record_first(FunctionResults& results);
  /// The same backwards at other sizes. `values`: of all expressions of the forward's graph.
  RecordedBackwards backwards_at(FunctionResults& results, std::span<const Number> values) const;
  /// Records one. Error(unsupported) if the rules use other values than at the sizes of the recording.
  std::unique_ptr<FunctionBackward> record_backward(FunctionResults& results, const Arrivals& arrivals,
                                                    std::span<const Number> values) const;

  const std::vector<int32_t>& inputs() const { return inputs_; }
  const std::vector<size_t>& made_leaves() const { return made_leaves_; }
  const Tensors& leaves() const { return leaves_; }
  bool has_functions() const { return has_functions_; }
  /// The backward for all results, in which sizes are symbols; null if there is none, or if no size is a symbol.
  const RecordedFunction* shared() const { return shared_ ? &*shared_ : nullptr; }

 private:
  RecordedBackwards record_backwards(FunctionResults& results, std::span<const Number> values) const;
  RecordedFunction record(FunctionResults& results, const Arrivals& arrivals,
                          std::span<const Number> values) const;
  static std::unique_ptr<FunctionBackward> ready(RecordedFunction recorded);
  void find_made_leaves(FunctionResults& results);

  mutable std::mutex mutex_;  // of one backward at a time
  std::unique_ptr<FunctionRecorder> recorder_;
  std::vector<int32_t> inputs_;      // of the graph: the first operands
  std::vector<size_t> made_leaves_;  // results: the operands after those
  Tensors leaves_;                   // on the recorded tape, of all operands
  bool has_functions_ = false;
  std::optional<RecordedFunction> shared_;
};

class FunctionBackwards {
 public:
  /// `first`: those recorded so far, for the sizes of `forward`. `values`: of all expressions of the tape's graph. The
  /// other arguments must outlive this object.
  FunctionBackwards(const RecordedFunction& forward, const RecordedTape& tape, FunctionResults& results,
                    std::span<const Number> values, RecordedBackwards first);

  /// After the forward has been recorded: which saved values are recomputed, and the plans so far.
  void find_recompute();
  void plan_first();
  /// What find_recompute() has found.
  BackwardChoices choices() const;
  /// Instead of it: takes the backward for all results from `shared`. False if that does not serve these sizes, or has
  /// a higher peak than the recorded one.
  bool adopt(const OptimisedFunction& shared, std::span<const Number> values);
  /// Or with a memory budget: the backward for all results is `planned`, and runs save these values for it.
  void fit(ir::Graph planned, std::vector<RecordedFunction::Input> inputs,
           std::vector<RecordedFunction::Saved> saved);

  /// The backward for these cotangents; recorded now if needed. Rethrows the error of its recording.
  FunctionBackward& find(const Record& record, std::span<TensorImpl* const> cotangents);
  /// The backward for gradients of all results; null if recording it failed.
  const FunctionBackward* of_all() const;
  /// The first backward recorded.
  const FunctionBackward& first() const { return *all_.begin()->second; }

  const ir::Recompute& recompute() const { return recompute_; }
  /// What runs save, by number: first the saved values of the recording.
  const std::vector<RecordedFunction::Saved>& saved() const { return saved_; }
  /// The values that only records in `released` use. Requires the mutex.
  std::vector<bool> unused(const std::unordered_set<const Record*>& released, size_t values) const;
  /// Whether all values that the rule of a record uses are defined. Requires the mutex.
  bool has_all(const Record& record, const Tensors& values) const;
  std::mutex& mutex() { return mutex_; }

 private:
  void plan(FunctionBackward& backward) const;
  Arrivals arrivals_at(const Record& record, std::span<TensorImpl* const> cotangents) const;
  void note_users(const FunctionBackward& backward);
  void note_user(size_t saved, const Record* user);
  void note_recompute();
  bool may_recompute() const;
  ir::Recompute recomputable() const;
  std::vector<int32_t> given_inputs(const RecordedFunction& backward) const;

  const RecordedFunction& forward_;
  const RecordedTape& tape_;
  FunctionResults& results_;
  const std::vector<Number> values_;
  mutable std::mutex mutex_;
  RecordedBackwards all_;
  ir::Recompute recompute_;
  std::vector<RecordedFunction::Saved> saved_;
  bool is_fitted_ = false;  // to a memory budget
  // Of each saved value: the records whose rules use it.
  std::vector<std::unordered_set<const Record*>> users_;
};

}  // namespace retrograd
