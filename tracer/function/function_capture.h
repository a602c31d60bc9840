// FunctionCapture: a recorded function made ready to run.
//
//   RecordedFunction       the graph as recorded: gradients of gradients replay it      recorded_function.h
//   FunctionGuards         what it depends on guards.h
//   FunctionResults        what a run gives                                             results.h
//   RecordedTape, FunctionBackwards   of a differentiable function                      backwards.h
//   PrecomputedGradients   of a loss                                                    precomputed_gradients.h
//   SavedRun               what a run leaves for its backwards                          saved_run.h
//
// Results of a step have no history (compile_step). Results of a function are linked to one tape record whose
// backward runs the plan of the backward graph (compile). A function is not recorded if user code called in a run
// keeps its tensors: kept_values.h. A FunctionCapture is immutable except for backwards added later, under a lock,
// and the counters for predictions.
// Start reading at the constructor, then run() in run.cc, link() and run_backward() in linked_record.cc.
#pragma once

#include <memory>
#include <optional>

#include "tracer/function/backwards.h"
#include "tracer/function/compile.h"
#include "tracer/function/guards.h"
#include "tracer/function/precomputed_gradients.h"
#include "tracer/function/results.h"
#include "tracer/function/saved_run.h"
#include "tracer/plan/plan.h"

namespace retrograd::inline v0 {

class NumbersOfRun;

class FunctionCapture : public std::enable_shared_from_this<FunctionCapture> {
 public:
  /// Records the function for arguments like these. `known`: the known calls of its opaque functions; throws
  /// DryRunNeeded if one is missing.
  FunctionCapture(const FunctionBody& body, const Tensors& arguments, CallGuard guard, FunctionKind kind,
                  const KnownCalls* known, SourceLocation where);
  ~FunctionCapture();
  FunctionCapture(const FunctionCapture&) = delete;

  const FunctionGuards& guards() const { return guards_; }
  /// Of its results: see Outcome.
  const std::shared_ptr<const void>& form() const { return form_; }
  /// `first`: with the numbers that the recording read.
  Tensors run(const Tensors& arguments, bool first, SourceLocation where);

  /// The bindings of the graph's inputs in a run.
  std::vector<ir::Binding> bind(const Tensors& arguments) const;

  /// Whether a run calls user code: hooks, opaque functions, pairs.
  bool calls_code() const { return calls_code_; }
  const ir::Graph& graph() const { return planned_; }
  const Plan& plan() const { return *plan_; }
  /// The backward for gradients of all results; null if there is none.
  const ir::Graph* backward_graph() const;
  /// Logs what was captured, and why.
  void log(std::string_view why) const;
  /// Null if there are none.
  PrecomputedGradients* precomputed() const { return precomputed_.get(); }

  /// The backward of a record made by run(): see OpInfo::host_backward.
  static void run_backward(Record& record, std::span<TensorImpl* const> operands, Tensor* results);

 private:
  friend struct SavedRun;

  void record(const FunctionBody& body, const Tensors& arguments, const KnownCalls* known);
  static void check_argument_hooks(const FunctionInputs& inputs);
  void make_plans(const Tensors& arguments);
  void plan_forward(const Tensors& arguments);
  void settle_recorded() noexcept;

  // Of a run:
  std::vector<WrittenInput> written_inputs(const Tensors& arguments) const;
  Tensors run(const Tensors& arguments, NumbersOfRun& read, SourceLocation where);
  Tensors run_plans(const Tensors& arguments, const std::vector<ir::Binding>& bindings, NumbersOfRun& read,
                    SourceLocation where);
  void give_grads(const Tensors& arguments, const Tensors& outputs) const;
  void write_back(const std::vector<ir::Binding>& bindings, const Tensors& outputs) const;
  Tensors bindings_to_keep(const std::vector<ir::Binding>& bindings) const;
  std::shared_ptr<SavedRun> save(const std::vector<ir::Binding>& bindings, Tensors keep,
                                 const Tensors& outputs, const std::vector<Number>& numbers);

  // Of its record:
  void link(Tensors& results, const std::vector<ir::Binding>& bindings, std::shared_ptr<SavedRun> saved,
            SourceLocation where);
  Tensors gradients_of(const FunctionBackward& backward, std::span<TensorImpl* const> cotangents,
                       const SavedRun& saved, Tensors values, SourceLocation where) const;
  Tensors replay_backward(const FunctionBackward& backward, std::span<TensorImpl* const> cotangents,
                          const SavedRun& saved, const Tensors& values, std::span<const Number> numbers,
                          SourceLocation where) const;
  std::vector<ir::Binding> bind_backward(const FunctionBackward& backward,
                                         std::span<TensorImpl* const> cotangents, const Tensors& saved) const;

  const FunctionKind kind_;
  const SourceLocation where_;  // of the call that was recorded
  RecordedFunction recorded_;
  FunctionGuards guards_;
  FunctionResults results_;
  std::shared_ptr<const void> form_;
  ir::Graph planned_;
  std::vector<Number> numbers_;
  std::unique_ptr<Plan> plan_;
  bool calls_code_ = false;
  bool numbers_are_open_ = true;  // numbers that the recording read are settled by the first run
  // Of a differentiable function; else null.
  std::unique_ptr<RecordedTape> tape_;
  std::unique_ptr<FunctionBackwards> backwards_;
  std::unique_ptr<PrecomputedGradients> precomputed_;
};

}  // namespace retrograd
