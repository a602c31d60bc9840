// FunctionResults: the results of a run of a recorded function, and the tensors that it changes.
//
// A **result binding** says how a result of a run is made: in memory that the run computes, or as an argument, a
// tensor from outside, the gradient of a leaf, or another result. The results of the function are followed by hidden
// ones: the base of a result that is a view, the new value of an argument that was written to (the argument takes
// over its place in the graph), and leaves that the function makes.
// Start reading at bind(), then make().
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/replay.h"
#include "tracer/function/recorded_function.h"

namespace retrograd::inline v0 {

class FunctionRecorder;

struct ResultBinding {
  Tensor recorded;                  // released when no further backward can be recorded
  Edge edge = {};                   // of it, as at the recording
  Location location;                // undefined: not computed, but
  int argument = -1;                // an argument,
  TensorImpl* grad_of = nullptr;    // the .grad of this leaf,
  std::optional<size_t> grad = {};  // as an index into RecordedFunction::grads,
  TensorImpl* outside = nullptr;    // a tensor from outside,
  int same_as = -1;                 // or an earlier result
  bool is_differentiable = false, is_leaf = false;
  bool is_multi_output_view = false, is_no_grad_view = false, is_function_view = false;
  bool is_inference = false;           // computed in inference mode
  bool is_outdated = false;            // a view whose memory was written to since it was made
  bool follows_base = false;           // a view whose gradient goes through its base, which was written to
  int base = -1;                       // of a view: the result that is its base; or the base of
  int base_argument = -1;              // this argument, or the argument itself; or
  TensorImpl* base_outside = nullptr;  // this tensor
  int rewrites = -1;                   // the argument whose history this becomes, or that of its base
  bool rewrites_base = false;
};

class FunctionResults {
 public:
  explicit FunctionResults(SourceLocation where) : where_(where) {}

  /// `given`: the stand-ins of the arguments, from which the function computed `results`. `has_history`: the function
  /// can be differentiated; with `gradients`, it is.
  void bind(FunctionRecorder& recorder, const Tensors& given, Tensors results, bool has_history,
            bool gradients);
  /// Adds a leaf that the function makes as a result. Returns its number.
  size_t add_made_leaf(TensorImpl& leaf);
  /// recorded(): the recorded tensors, for FunctionRecorder::finish(). finish(): sets the locations.
  Tensors recorded() const;
  void finish(const RecordedFunction& recorded);
  /// No backward can be recorded any more.
  void forget_recorded();

  size_t size() const { return all_.size(); }
  /// The number of results that the function returned: the first ones.
  size_t given() const { return given_; }
  const ResultBinding& operator[](size_t i) const { return all_[i]; }
  ResultBinding& operator[](size_t i) { return all_[i]; }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

  // In a run, in this order:
  /// Makes the computed results.
  Tensors make(const std::vector<ir::Binding>& bindings, const Tensors& outputs) const;
  /// Arguments that were written to take over the place of their new value in the graph; base and views follow.
  void take_over(const Tensors& arguments, const Tensors& results, SourceLocation where) const;
  /// Completes the results of the function.
  Tensors finish(Tensors results, const RecordedFunction& recorded, const Tensors& arguments,
                 const Tensors& outputs) const;

 private:
  using Numbers = std::unordered_map<const TensorImpl*, size_t>;  // the first result with each recorded cell
  Numbers numbers() const;
  bool is_made_leaf(const Tensor& made) const;
  void bind_given(FunctionRecorder& recorder, const Tensors& given, const Tensors& results);
  void find_history(ResultBinding& r, const Numbers& numbers, bool gradients);
  void find_base(FunctionRecorder& recorder, size_t result, Numbers& numbers);
  void find_written(FunctionRecorder& recorder);
  bool is_view_of_written(const TensorImpl& view, const Numbers& numbers) const;
  void attach_views(const Tensors& arguments, const Tensors& results) const;

  std::vector<ResultBinding> all_;
  size_t given_ = 0;
  const SourceLocation where_;  // of the call that was recorded
};

/// A separate cell for memory of the run or of an input.
Tensor tensor_at(const Location& location, const std::vector<ir::Binding>& bindings, const Tensors& outputs);
/// The same for a gradient: the output itself if it has that layout.
Tensor grad_at(const Location& location, const Tensors& outputs);
/// The binding of an input that is the .grad of a leaf.
Tensor grad_memory(TensorImpl& leaf);

}  // namespace retrograd
