// FunctionCapture: a recorded function made ready to run: its graph, its plan, what binds both to a call, and, of a differentiable function,
// its backwards.
//
//   step      results have no history (tracer/compile.h: compile_step)
//   function  the results of a run are linked to one tape record whose backward runs the plan of the backward graph (compile)
// A run of a function leaves a Saved: the values that its backward needs. It goes with the slots of the record: released after a backward that
// does not retain the graph, and checked for versions. A backward graph is recorded for each set of results that have a gradient; the first,
// for all of them, decides what is saved.
// Where gradients are to be differentiated again, both graphs are replayed into the current emitter.
// Immutable but for the backwards added later, under a lock.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "tracer/compile.h"
#include "tracer/function_recorder.h"
#include "tracer/plan.h"

namespace retrograd {

/// What a recording depends on, of one tensor: an argument, or one from outside.
struct TensorLook {
  TensorType type;
  IntList strides;
  bool requires_grad, is_leaf;
  uint64_t hooks;  // of a leaf in a step, where they are part of the graph

  TensorLook(const TensorImpl& x, FunctionKind kind);
  bool operator==(const TensorLook& o) const;
  std::string text() const;
};

/// What a recording depends on, of a call.
struct CallLook {
  std::vector<TensorLook> arguments;
  bool gradients;  // gradient mode

  CallLook(const Tensors& arguments, FunctionKind kind);
  /// What differs from `now`, in words; empty when nothing does.
  std::string difference(const CallLook& now) const;
};

class FunctionCapture : public std::enable_shared_from_this<FunctionCapture> {
 public:
  using Function = std::function<Tensors(const Tensors&)>;

  /// Records the function for arguments like these.
  FunctionCapture(const Function& function, const Tensors& arguments, CallLook look, FunctionKind kind);
  ~FunctionCapture();
  FunctionCapture(const FunctionCapture&) = delete;

  /// Why it cannot serve a call; empty when it can.
  std::string misfit(const CallLook& look, const Tensors& arguments) const;
  /// `first`: with the numbers that the recording has read.
  Tensors run(const Tensors& arguments, bool first, SourceLocation where);

  const ir::Graph& graph() const { return planned_; }
  /// Of the results all of which have a gradient; null when there is none.
  const ir::Graph* backward_graph() const;

  /// The backward of a record that run() has made: see OpInfo::host_backward.
  static void run_backward(Record& record, std::span<TensorImpl* const> operands, Tensor* results);

 private:
  struct Saved;
  struct Backward;
  // A result that was not computed: an argument, by its number, or a tensor from outside.
  struct Passed {
    size_t result;
    int argument;
    Tensor tensor;
  };

  void record(const Function& function, const Tensors& arguments);
  void add_input(const Tensor& leaf, int32_t input);
  std::unique_ptr<Backward> record_backward(const std::vector<bool>& has_gradient);
  const Backward& backward_for(std::span<TensorImpl* const> cotangents);
  std::vector<Number> read_numbers(bool first) const;
  std::vector<ir::Binding> bind(const Tensors& arguments) const;
  std::vector<WrittenInput> written_inputs(const Tensors& arguments) const;
  void give_grads(const Tensors& arguments, const Tensors& outputs) const;
  void write_back(const std::vector<ir::Binding>& bindings, const Tensors& outputs) const;
  void link(Tensors& results, std::shared_ptr<Saved> saved, SourceLocation where);
  std::vector<ir::Binding> bind_backward(const Backward& backward, std::span<TensorImpl* const> cotangents,
                                         const Tensors& saved) const;

  const FunctionKind kind_;
  CallLook look_;
  RecordedFunction recorded_;  // its graph as recorded: gradients of gradients replay it
  ir::Graph planned_;
  std::vector<std::pair<TensorImpl*, TensorLook>> outside_;  // kept alive by recorded_
  std::vector<Number> numbers_;
  std::vector<Source> sources_;
  std::unique_ptr<Plan> plan_;
  std::vector<Passed> passed_;

  // Of a differentiable function: the recorded tape, kept for further backwards.
  Tensors results_;                       // recorded values
  std::vector<bool> is_differentiable_;  // of the results
  std::vector<int32_t> inputs_;           // that want a gradient: the record's operands
  Tensors leaves_;                        // on the recorded tape, parallel
  std::unique_ptr<FunctionRecorder> recorder_;
  std::mutex mutex_;
  std::map<std::vector<bool>, std::unique_ptr<Backward>> backwards_;  // by which results have a gradient
};

}  // namespace retrograd
