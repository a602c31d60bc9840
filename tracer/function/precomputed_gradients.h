// PrecomputedGradients: gradients that a compiled loss computes with its value.
//
// A loss made of elementwise ops saves only its operands: its backward recomputes the values of the forward
// (ir/passes/recompute_saved.h), including exponentials. Its cotangent is nearly always 1, as from loss.backward().
// So there is a third plan, of both graphs with a cotangent of 1: it computes the loss and, from the same values and
// bit for bit, the gradients, which the backward returns. The plan is made at the first backward that it would have
// served. Whether a call runs it is predicted from the outcome of earlier calls; a wrong prediction costs the time of
// a backward, never a result: for another cotangent, for gradients that are differentiated again, or with a retained
// graph, the ordinary backward runs, and without enough memory for the plan, the ordinary forward. The memory kept
// between forward and backward is at most what an eager run saves, and so is the peak.
// On the CPU only, and for float32 and float64: elsewhere a cotangent cannot be read without waiting, or never is.
#pragma once

#include <atomic>

#include "tracer/function/backwards.h"

namespace retrograd::inline v0 {

/// Whether the next call should compute gradients. Thread-safe.
class GradientPrediction {
 public:
  /// The number of wrong predictions allowed, plus one for every four right ones; those that wait for a backward
  /// count as wrong.
  static constexpr int64_t kMisses = 8;

  bool expects() const {
    return expects_.load(std::memory_order_acquire) && waiting_ + misses_ < kMisses + hits_ / 4;
  }
  /// Gradients were computed and wait for a backward.
  void computed() { ++waiting_; }
  /// A backward used them.
  void served() {
    --waiting_;
    ++hits_;
    expect();
  }
  /// A backward could have used them.
  void expect() { expects_.store(true, std::memory_order_release); }
  /// No backward will use them any more.
  void missed() {
    --waiting_;
    ++misses_;
    expects_.store(false, std::memory_order_relaxed);
  }
  int64_t hits() const { return hits_; }
  int64_t misses() const { return misses_; }

 private:
  std::atomic<bool> expects_ = false;
  std::atomic<int64_t> waiting_ = 0, hits_ = 0, misses_ = 0;
};

class PrecomputedGradients {
 public:
  /// Whether a function can have precomputed gradients: only a loss that saves no value that it computed. Otherwise
  /// most of the backward's work is not shared with the forward, and much is wasted if a prediction is wrong.
  static bool are_possible(const RecordedFunction& forward, const FunctionBackwards& backwards,
                           const RecordedTape& tape, const FunctionResults& results);
  /// `numbers`: of the forward. The arguments must outlive this object.
  PrecomputedGradients(const RecordedFunction& forward, FunctionBackwards& backwards, const RecordedTape& tape,
                       std::span<const Number> numbers)
      : forward_(forward), backwards_(backwards), tape_(tape), numbers_(numbers) {}

  /// Whether the gradients are those of this backward for these cotangents.
  bool serve(const FunctionBackward& backward) const { return &backward == &backwards_.first(); }
  static bool is_cotangent(std::span<TensorImpl* const> cotangents);
  /// A backward ran that they would have served.
  void expect();
  /// run(): a run with gradients after the outputs of the forward, if that pays off and memory suffices; else
  /// nothing.
  bool expects() const { return prediction_.expects(); }
  const ir::Graph& graph() const { return planned_; }
  std::optional<Tensors> run(const std::vector<ir::Binding>& bindings, std::span<const Number> numbers);
  /// The gradients among the outputs of a run; none of an ordinary run.
  Tensors of_run(const Tensors& outputs);

  GradientPrediction& prediction() { return prediction_; }
  const GradientPrediction& prediction() const { return prediction_; }

 private:
  void make_plan();
  ir::Graph joined() const;
  int64_t bytes_not_saved() const;

  const RecordedFunction& forward_;
  FunctionBackwards& backwards_;
  const RecordedTape& tape_;
  const std::span<const Number> numbers_;
  // Made under the mutex of the backwards; available once the prediction expects a backward.
  bool is_tried_ = false;
  ir::Graph planned_;
  std::unique_ptr<Plan> plan_;  // null: not worth it
  GradientPrediction prediction_;
};

}  // namespace retrograd
