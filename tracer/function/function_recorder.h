// FunctionRecorder: the emitter that records a user function, or a whole training step: forward, backward and
// optimizer.
//
// A call becomes a node. The rest of a recording is divided into parts, each with its own state:
//
//   RecordedMemory   which value each storage holds now; what cells show; what was written      recorded_memory.h
//   FunctionInputs   what the inputs of the graph are bound to; stand-ins of arguments           function_inputs.h
//   OutsideTensors   tensors that it refers to and did not make                                outside_tensors.h
//   LeafGradients    .grad of leaves                                                             leaf_gradients.h
//   SavedValues      the values of a forward that its backwards use                      saved_values.h
//   HostCalls        nodes that call user code, and the nodes before them                      host_calls.h
//   UserFunctions    calls of user functions (engine/function.h)                          user_functions.h
//   FunctionOutputs  outputs of the graph                                                        function_outputs.h
//   BackwardReads    what a backward read from its forward                                     recorded_function.h
//
// A differentiable function has a second graph, its backward: the driver runs over the recorded tape into a second
// recorder, whose `forward` is the first. A value of the forward that it meets is **saved**: an output there, an
// input here. So exactly the values that the rules use are saved. The recorder runs under a Taper, so the ordinary
// driver records the function's own backward(), with rules, hooks and unpacks in their places.
// Sizes, strides and numbers are those of the recorded call, except sizes of arguments that are symbols
// (ArgumentSizes), and numbers that the host supplies for each run (LiveNumbers: learning rates, step counts, positions
// in random streams), which are symbols read before each run.
// Recording changes nothing outside: finish(), or the destructor, restores .grad of all leaves.
// Limits: a tensor from outside has no history of its own; traceable hooks that read data fail.
// Its methods are those of an emitter and of a FunctionRecording, and one accessor for each part.
// Start reading at emit().
#pragma once

#include "engine/driver.h"
#include "tracer/backward/graph_emitter.h"
#include "tracer/function/argument_sizes.h"
#include "tracer/function/function_inputs.h"
#include "tracer/function/function_outputs.h"
#include "tracer/function/host_calls.h"
#include "tracer/function/leaf_gradients.h"
#include "tracer/function/recorded_function.h"
#include "tracer/function/recorded_memory.h"
#include "tracer/function/saved_values.h"
#include "tracer/function/user_functions.h"

namespace retrograd::inline v0 {

/// Thrown for code that cannot be recorded: the enclosing function is then run eagerly, each time.
class NotRecordable : public Error {
 public:
  explicit NotRecordable(const std::string& why) : Error(Category::unsupported, why) {}
};

/// Thrown for a function that is recorded with sizes as symbols, but has to be recorded with fixed sizes.
class FixedSizesNeeded : public Error {
 public:
  explicit FixedSizesNeeded(const std::string& why) : Error(Category::unsupported, why) {}
};

/// Thrown when a live number is used as a size for the first time: the function is recorded again, with a symbol for
/// it.
class LiveSizeNeeded : public Error {
 public:
  explicit LiveSizeNeeded(LiveInteger number)
      : Error(Category::unsupported, "a live number is used as a size"), number_(std::move(number)) {}
  const LiveInteger& number() const { return number_; }

 private:
  LiveInteger number_;
};

class FunctionRecorder final : public GraphEmitter, public FunctionRecording {
 public:
  /// `known`: the known calls of opaque functions, in order.
  FunctionRecorder(ir::Graph& graph, const ArgumentSizes& sizes, SourceLocation where,
                   const KnownCalls* known, PairForm pairs);
  /// For the backward of the function that `forward` has recorded. The table of `graph` begins as that of the forward.
  FunctionRecorder(ir::Graph& graph, FunctionRecorder& forward);
  ~FunctionRecorder();
  FunctionRecorder(const FunctionRecorder&) = delete;

  /// Records the backward of a forward.
  Tensors backward_of_function(const BackwardRequest& request, Walk& walk);
  /// After the function, and after its first backward: fills in outputs and everything else of `out` except the
  /// graph, which already holds the recording.
  void finish(const Tensors& results, RecordedFunction& out);
  /// Whether runs require the arguments at their present locations relative to each other and to their bases.
  bool depends_on_locations() const;
  /// Throws DryRunNeeded, NotRecordable, FixedSizesNeeded or LiveSizeNeeded if the function met one, even if it caught
  /// that.
  void check_recorded() const;
  /// cells(): made for values of the forward. each_held(): the cells that the recorder holds, once per reference.
  const std::vector<RefPtr<TensorImpl>>& cells() const { return cells_; }
  void forget_cells() { cells_.clear(); }
  void each_held(const std::function<void(const TensorImpl*)>& f) const;

  void emit(const Call& call, Tensor* results) override;
  std::string name() const override { return "FunctionRecorder"; }
  Values values() const override { return Values::of_function; }
  void at(const Origin& origin) override;
  Tensors own_backward(const BackwardRequest& request, Walk& walk) override;
  void cannot_record(std::string_view op, std::string_view why, SourceLocation where) override;
  FunctionRecording* of_function() override { return this; }

  Tensor present_value(TensorImpl& self) override { return memory_.present_value(self); }
  void write(TensorImpl& self, const Tensor& result, SourceLocation where) override;
  void made_of_host_values(const Tensor& copy, const Tensor& values) override {
    memory_.made_of_host_values(copy, values);
  }
  Tensor host_values(const TensorImpl& cell) const override;
  void geometry_changes(const TensorImpl& self, SourceLocation where) override;
  bool writes_to(const Storage& memory) const override;
  void live_numbers(std::span<Scalar> out, const LiveNumbers& numbers) override;
  void depends_on(std::function<bool()> holds, std::string_view what) override;
  Dim live_size(const LiveInteger& number, SourceLocation where) override;
  void grad_is_replaced(TensorImpl& leaf) override { grads_.is_replaced(leaf); }
  void grad_is_read(TensorImpl& leaf) override { grads_.is_read(leaf); }
  void hook_is_added(const TensorImpl& leaf, SourceLocation where) override;
  ir::ValueId value_of(const Tensor& tensor) override;

  // For the parts. The state of a part is its own; the following is shared by all of them.
  ir::Graph& graph() { return graph_; }
  const ir::Graph& graph() const { return graph_; }
  uint64_t id() const { return id_; }
  FunctionRecorder* forward() const { return forward_; }
  const Position& position() const { return position_; }
  const ArgumentSizes& sizes() const { return sizes_; }
  PairForm pairs() const { return pairs_; }
  uint64_t first_sequence() const { return first_seq_; }
  RecordedMemory& memory() { return memory_; }
  const RecordedMemory& memory() const { return memory_; }
  FunctionInputs& inputs() { return inputs_; }
  const FunctionInputs& inputs() const { return inputs_; }
  LeafGradients& grads() { return grads_; }
  const LeafGradients& grads() const { return grads_; }
  SavedValues& saved() { return saved_; }
  const SavedValues& saved() const { return saved_; }
  HostCalls& host() { return host_; }
  const HostCalls& host() const { return host_; }
  UserFunctions& functions() { return functions_; }
  FunctionOutputs& outputs() { return outputs_; }
  BackwardReads& reads() { return reads_; }
  using GraphEmitter::append;
  using GraphEmitter::is_nested;
  using GraphEmitter::make;
  using GraphEmitter::refuse;
  /// The value of a tensor; `has_history`: the reader has a gradient for it.
  ir::ValueId read(const Tensor& tensor, bool has_history);
  /// Nodes have been appended: whether the last one is in the history of its results.
  void note_node(bool has_history);
  /// Holds a tensor that a run refers to (OutsideTensors). Returns it.
  TensorImpl* hold(TensorImpl& tensor) {
    return outside_->hold(tensor, position_.where ? position_.where : where_);
  }
  /// In a backward: these records, besides those that read it, use the saved value of the forward that `tensor` is.
  void note_users(const Tensor& tensor, const std::vector<const Record*>& users);
  bool is_differentiable(size_t node) const { return !no_grad_[node]; }
  /// The cell represents a value of the forward.
  void note_made(const Tensor& value) { made(value); }
  /// How many nodes with effects have been appended.
  size_t effects() const { return effects_; }
  void note_effect() { ++effects_; }
  /// Memory has a new value: cells on it may be out of date.
  void note_write() { has_written_ = true; }
  bool has_written() const { return has_written_; }

 private:
  void made(const Tensor& value) override {
    if (!forward_) cells_.push_back(value.ref());
  }
  int32_t index_of_saved(const Tensor& tensor, const Record* user);
  const ArgumentSizes& recorded_sizes() const { return forward_ ? forward_->sizes_ : sizes_; }
  void check_sizes_of(const Call& call, const Tensor* results);
  [[noreturn]] void refuse_size(const Call& call, int32_t symbol);
  [[noreturn]] void need_live_size(const LiveInteger& number);
  void emit_call(const Call& call, Tensor* results);
  void emit_view(const Call& call, Tensor* results);
  void emit_bookkeeping(const Call& call, Tensor* results);
  void restore();

  FunctionRecorder* const forward_;  // of a backward; else null
  const ArgumentSizes sizes_;
  const PairForm pairs_;
  std::optional<SymbolTable>
      later_symbols_;  // for backwards recorded after the forward; guarded as these are
  const std::shared_ptr<OutsideTensors> outside_ = std::make_shared<OutsideTensors>();
  RecordedMemory memory_{*this};
  FunctionInputs inputs_{*this};
  LeafGradients grads_{*this};
  SavedValues saved_{*this};
  HostCalls host_{*this};
  UserFunctions functions_;
  FunctionOutputs outputs_{*this};
  BackwardReads reads_;
  std::vector<RecordedFunction::Numbers> numbers_;
  std::vector<RecordedFunction::Dependency> dependencies_;
  std::string not_recordable_;  // why
  LiveInteger live_size_;       // that is needed
  std::vector<RefPtr<TensorImpl>> cells_;
  std::vector<bool> no_grad_;  // of each node
  size_t effects_ = 0;
};

}  // namespace retrograd
