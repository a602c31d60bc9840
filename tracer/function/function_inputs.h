// FunctionInputs: what the inputs of a recorded graph are bound to: arguments, their bases, tensors from outside,
// saved values, cotangents.
//
// Arguments have **stand-ins**, which share memory and bases in the same way as the arguments. The stand-in of a leaf
// is a leaf; that of another tensor with a gradient is an alias of a hidden leaf, so that it can be written to. A
// base that is not an argument also has a stand-in; it becomes an input when needed. The stand-ins of arguments that
// share memory share a storage, hence a root, which begins as the base among them, or else as the first of them.
// Until the memory is written to, each argument has the value of its own input.
// A tensor that the function did not make is **captured**: it is an input bound to itself in each run. It has no
// history of its own.
// Start reading at arguments() and capture().
#pragma once

#include <unordered_map>
#include <vector>

#include "tracer/function/recorded_function.h"
#include "tracer/function/recorded_memory.h"

namespace retrograd::inline v0 {

class FunctionRecorder;

/// A stand-in of an argument, or of the base of one.
struct StandIn {
  TensorImpl* stands_for;
  Tensor tensor;
  Tensor leaf;  // receives the gradients
  int argument, base_of;
  int32_t input;           // of an argument: its number
  RefPtr<Record> history;  // before the function ran
};

/// All stand-ins, with look-up by each of their tensors: null if the tensor is not a stand-in.
class StandIns {
 public:
  const StandIn* of_tensor(const TensorImpl* x) const { return find(tensors_, x); }
  const StandIn* of_leaf(const TensorImpl* x) const { return find(leaves_, x); }
  const StandIn* standing_for(const TensorImpl* x) const { return find(originals_, x); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

  void add(StandIn made);
  /// Arguments in their order, then bases in that of their views.
  void sort();

 private:
  using Numbers = std::unordered_map<const TensorImpl*, size_t>;
  const StandIn* find(const Numbers& in, const TensorImpl* x) const {
    const auto it = in.find(x);
    return it == in.end() ? nullptr : &all_[it->second];
  }
  std::vector<StandIn> all_;
  Numbers originals_, tensors_, leaves_;
};

class FunctionInputs {
 public:
  explicit FunctionInputs(FunctionRecorder& of) : of_(of) {}

  /// Stand-ins for the arguments; an argument passed twice has one.
  Tensors arguments(const Tensors& given);
  const StandIns& stand_ins() const { return stand_ins_; }
  /// The argument whose stand-in this is; -1: none.
  int argument_of(const TensorImpl& cell) const;
  /// The input number of a stand-in; the input of a base is made now.
  int32_t input_of(const Tensor& stand_in);
  /// Makes the initial input of a root if the root is a base that is not yet an input.
  void need_input(Root& root);

  /// An input for memory from outside.
  Root& capture(TensorImpl& cell);
  /// An input that is the .grad of a leaf, or of an argument, whichever tensor that is in a run; `grad` is it now.
  Root& capture_grad(TensorImpl& grad, TensorImpl& leaf, int argument);
  /// The input for a saved value of the forward.
  ir::ValueId of_saved(int32_t number, const TensorType& type);
  /// In a backward: the gradient of result i of the forward.
  Tensor cotangent(const TensorType& type, int result);
  /// A handle for a hook, which may belong to a leaf.
  int32_t add_hook(Hook* hook, TensorImpl* leaf);
  int32_t add_code(RefPtr<HostCode> code);

  /// The leaves from outside that require a gradient, each with its input number.
  std::vector<std::pair<Tensor, int32_t>> captured_leaves() const;
  /// Of each value of the graph, whether it is an input with a gradient.
  std::vector<bool> have_gradient() const;
  std::vector<RecordedFunction::Input> take();

 private:
  Tensor stand_in(TensorImpl& like, int argument, int base_of);
  Root& root_of_argument(TensorImpl& like, TensorImpl& cell, int32_t number, int base_of);
  void link(StandIn& made);
  Root& from_outside(TensorImpl& cell);
  int32_t next() const { return static_cast<int32_t>(inputs_.size()); }

  FunctionRecorder& of_;
  std::vector<RecordedFunction::Input> inputs_;
  std::vector<int32_t> numbers_;  // of the arguments' inputs
  StandIns stand_ins_;
  std::unordered_map<const Storage*, RefPtr<Storage>> argument_memory_;  // keyed by the arguments' own memory
  std::unordered_map<int32_t, ir::ValueId> saved_;                       // of a backward
};

}  // namespace retrograd
