// compile and compile_step: functions of tensors, recorded once and run as plans.
//
//   auto f = rg::compile([&](const Tensor& x) { return model.forward(x); });      // forward and backward planned; used like the function
//   auto step = rg::compile_step([&](const Tensor& x, const Tensor& y) {           // a whole training step as one graph
//     optimizer.zero_grad();
//     const Tensor loss = nn::cross_entropy(model.forward(x), y);
//     loss.backward();
//     optimizer.step();
//     return loss;
//   });
//
// The function is called once for each kind of arguments (dtypes, shapes, strides, what requires a gradient, gradient mode) and recorded
// (tracer/function_recorder.h); later calls run the plan: the same operations in the same order, bit for bit. What the function does beside
// operations on tensors (printing, counting, choosing a branch) is done at the recording only. It may write to tensors from outside
// (parameters, state of optimizers, running statistics) and to .grad; those are changed by each run. Learning rates and other options of
// optimizers, and random numbers, are those of each run. An item() or data_ptr() of a computed value is an Error(bad_argument) that names the line.
// The results of compile() can be differentiated, twice as well, and are views, or the same tensor, where the function's are; an argument that
// it writes to changes and gets its history as it would otherwise. Those of compile_step() have no history: what wants a gradient is
// differentiated inside. An error while recording leaves everything outside as it was; an error of the function's backward comes when that runs.
// Tensors from outside are recognised as the objects that they are: one that is another object from call to call must be an argument. One that
// has another type or layout, other hooks on the way of a backward in the function, or has or lacks a .grad that the function uses, or has one
// that lies otherwise, leads to another recording; so does an option of an optimizer that is no number (nesterov, amsgrad, maximize), and
// a module that was switched between training and use.
// Saved-tensor hooks, hooks and functions of the user's own run in each call, in their places, unless they are traceable: then they are recorded.
// Such code runs when the function has returned, also in later calls: what it captures by reference must not be a local of the function. A function
// whose tensors it keeps is called as it is; so is one that does what no recording can follow (anomaly mode, AllowMutationOnSavedTensors, opaque
// code in a backward with create_graph, a hook that it adds to an argument or to a leaf from outside).
// While forward mode, anomaly mode or AllowMutationOnSavedTensors are on, inside another recorded function, and at the first call of one
// that calls opaque functions, the function itself is called. All cases are listed in docs/design.md, section 6.
// Hooks on a result see the gradients that reach it from outside: uses inside the function are part of its own backward.
// A tensor on which retain_grad() is called inside of compile()'s function has no .grad after a backward from outside.
// Calls of one step from several threads take turns, save for those that run code of the user's.
// Limits: those of the recorder; at most kCaptures recordings, the least recently used goes first.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "tracer/compile_backward.h"
#include "tracer/segments.h"

namespace retrograd {

enum class FunctionKind : uint8_t { step, function };

/// The part that does not depend on the function's type.
class FunctionCache {
 public:
  static constexpr size_t kCaptures = 16;
  using Function = std::function<Tensors(const Tensors&)>;

  struct Stats {
    int64_t captures = 0;   // graphs recorded, each with its plan
    int64_t hits = 0;       // calls served by one that was there
    int64_t evictions = 0;  // captures that had to go
    int64_t nodes = 0;      // of graph()
    int64_t eager = 0;      // calls of the function itself, with neither; see last_eager_reason()
    int64_t ahead =
        0;  // backwards whose gradients the call had computed with the loss (tracer/function_ahead.h)
    int64_t ahead_missed = 0;   // calls that computed some which no backward took
    LaunchStats launches = {};  // of its plans, where their executor records launches; else 0
  };

  explicit FunctionCache(FunctionKind kind);
  ~FunctionCache();
  /// What is left behind has no graphs and no counts, and its calls are an Error(bad_argument).
  FunctionCache(FunctionCache&&);
  FunctionCache& operator=(FunctionCache&&);

  /// function(arguments), recorded or run again. It must be the same function each time.
  Tensors run(const Function& function, const Tensors& arguments,
              SourceLocation where = SourceLocation::current());

  Stats stats() const;
  /// The graph of the function that ran last, without gradients that its plan may compute ahead; null before the first. And that of its backward, for
  /// gradients of all results; null when there is none.
  std::shared_ptr<const ir::Graph> graph() const;
  std::shared_ptr<const ir::Graph> backward_graph() const;
  /// Why the last recording was needed: "first call", or what was not as before.
  std::string last_capture_reason() const;
  /// Why the last call that was none of a graph called the function itself; empty when there was none.
  std::string last_eager_reason() const;
  /// Of the plan that ran last: its segments, which are started as graphs, and why they are cut, a line each (tracer/segments.h).
  std::string segments() const;
  /// Forgets all graphs and counts.
  void reset();

 private:
  struct State;
  Tensors run_eagerly(const Function& function, const Tensors& arguments, std::string why);
  Tensors rehearse(const Function& function, const Tensors& arguments, std::string why);

  std::unique_ptr<State> state_;
};

/// A tensor and the place of the call that it is an argument of.
class CallArgument {
 public:
  CallArgument(const Tensor& tensor, SourceLocation where = SourceLocation::current())
      : tensor_(tensor), where_(where) {}
  const Tensor& tensor() const { return tensor_; }
  SourceLocation where() const { return where_; }

 private:
  const Tensor& tensor_;
  SourceLocation where_;
};

/// Called like the function that it was made of, which takes tensors and gives a tensor, several, or nothing. Errors name the line of the
/// call: the first argument brings it along.
template <class F>
class Compiled : public FunctionCache {
 public:
  Compiled(F function, FunctionKind kind) : FunctionCache(kind), function_(std::move(function)) {}

  auto operator()(SourceLocation where = SourceLocation::current()) {
    return call(std::index_sequence<>(), {}, where);
  }
  template <class... Rest>
  auto operator()(const CallArgument& first, const Rest&... rest) {
    return call(std::index_sequence_for<CallArgument, Rest...>(), {first.tensor(), rest...}, first.where());
  }

 private:
  template <size_t... I>
  auto call(std::index_sequence<I...>, const Tensors& arguments, SourceLocation where) {
    for (const Tensor& argument : arguments)
      if (!argument.defined())
        fail(Category::bad_argument, "compile",
             "an argument of a compiled function is undefined. Hint: a default-constructed Tensor has no "
             "value",
             where);
    using Result = decltype(function_(arguments[I]...));
    const Function plain = [this](const Tensors& a) -> Tensors {
      if constexpr (std::is_void_v<Result>)
        return function_(a[I]...), Tensors{};
      else if constexpr (std::is_same_v<Result, Tensor>)
        return {function_(a[I]...)};
      else
        return function_(a[I]...);
    };
    Tensors results = run(plain, arguments, where);
    if constexpr (std::is_same_v<Result, Tensor>)
      return std::move(results[0]);
    else if constexpr (!std::is_void_v<Result>)
      return results;
  }

  F function_;
};

/// A function of tensors whose forward and backward run as plans.
template <class F>
Compiled<F> compile(F function) {
  return {std::move(function), FunctionKind::function};
}

/// A training step, or another function whose results nobody differentiates, as one plan.
template <class F>
Compiled<F> compile_step(F function) {
  return {std::move(function), FunctionKind::step};
}

}  // namespace retrograd
