// SizedFunction: a recorded function made ready to run for one set of sizes.
//
//   RecordedFunction       the bindings at these sizes and, if there is a backward, the graph, which gradients of
//                          gradients replay                                    recorded_function.h
//   FunctionResults        what a run gives                                             results.h
//   FunctionBackwards      of a differentiable function                                 backwards.h
//   PrecomputedGradients   of a loss                                                    precomputed_gradients.h
//   SavedRun               what a run leaves for its backwards                          saved_run.h
//
// The recording itself is a FunctionCapture. If none of its sizes is a symbol, its one SizedFunction shares its graph.
// Results of a step have no history (compile_step). Results of a function are linked to one tape record whose
// backward runs the plan of the backward graph (compile).
// Immutable except for backwards added later, under a lock, and the counters for predictions.
// Start reading at run() in run.cc, then link() and run_backward() in linked_record.cc.
#pragma once

#include <memory>
#include <optional>

#include "ir/splice.h"
#include "tracer/function/function_capture.h"
#include "tracer/function/precomputed_gradients.h"
#include "tracer/function/saved_run.h"
#include "tracer/plan/plan.h"

namespace retrograd::inline v0 {

class NumbersOfRun;

class SizedFunction : public std::enable_shared_from_this<SizedFunction> {
 public:
  /// `arguments`: of these sizes. `values`: of all expressions of the capture's graph at these sizes.
  SizedFunction(std::shared_ptr<FunctionCapture> capture, const Tensors& arguments,
                std::vector<Number> values, const MemoryBudget& budget = {});
  SizedFunction(const SizedFunction&) = delete;

  const FunctionCapture& capture() const { return *capture_; }
  const std::shared_ptr<FunctionCapture>& shared_capture() const { return capture_; }
  /// Whether it was made for these values of the symbols of sizes.
  bool has_sizes(std::span<const Number> values) const;
  /// `first`: with the numbers that the recording read.
  Tensors run(const Tensors& arguments, bool first, SourceLocation where);

  /// The bindings of the graph's inputs in a run.
  std::vector<ir::Binding> bind(const Tensors& arguments) const;

  const ir::Graph& graph() const { return planned_; }
  const Plan& plan() const { return *plan_; }
  /// The backward for gradients of all results; null if there is none.
  const ir::Graph* backward_graph() const;
  /// The same as recorded.
  const RecordedFunction* recorded_backward() const;
  /// Logs what was captured, and why.
  void log(std::string_view why) const;
  /// What planning it has found: see FunctionCapture::choose().
  BackwardChoices choices() const;
  /// With a budget; else null.
  const MemoryReport* memory() const { return memory_.get(); }
  /// Null if there are none.
  PrecomputedGradients* precomputed() const { return precomputed_.get(); }

  /// The backward of a record made by run(): see OpInfo::host_backward.
  static void run_backward(Record& record, std::span<TensorImpl* const> operands, Tensor* results);

 private:
  friend struct SavedRun;

  void make_plans(const Tensors& arguments, const MemoryBudget& budget);
  void plan_forward(const Tensors& arguments);
  void plan_whole_within(const MemoryBudget& budget, const Tensors& arguments);
  void plan_with_backward_within(const MemoryBudget& budget, const Tensors& arguments);
  int64_t take_fitted(const ir::Graph& joint, const ir::Boundary& boundary, const Tensors& arguments);
  ir::Graph optimised_forward() const;
  bool plan_shared(const Tensors& arguments);
  void make_plan(const Tensors& arguments, std::optional<int64_t> arena_waste, ir::GroupMemories& groups);
  std::vector<WrittenInput> written_inputs(std::span<const ir::Binding> bindings) const;

  // Of a run:
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
                       const SavedRun& saved, SavedRun::Taken taken, Tensors& left,
                       const Record& record) const;
  Tensors replay_backward(const FunctionBackward& backward, std::span<TensorImpl* const> cotangents,
                          const SavedRun& saved, const Tensors& values, std::span<const Number> numbers,
                          SourceLocation where) const;
  std::vector<ir::Binding> bind_backward(const std::vector<RecordedFunction::Input>& inputs,
                                         std::span<TensorImpl* const> cotangents,
                                         const std::vector<ir::Binding>& bindings_of_run,
                                         const Tensors& saved) const;

  const std::shared_ptr<FunctionCapture> capture_;
  const std::vector<Number> sizes_;
  const std::optional<RecordedFunction> own_;  // if sizes are symbols
  const RecordedFunction& recorded_;
  FunctionResults results_;
  ir::Graph planned_;
  std::vector<Number> numbers_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<const MemoryReport> memory_;
  // Of a differentiable function; else null.
  std::unique_ptr<FunctionBackwards> backwards_;
  std::unique_ptr<PrecomputedGradients> precomputed_;
};

}  // namespace retrograd
