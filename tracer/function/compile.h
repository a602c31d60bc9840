// compile and compile_step: functions of tensors, recorded once and run as plans.
//
//   auto f = rg::compile([&](const Tensor& x) { return net.forward(x); });  // forward and backward as plans
//   auto step = rg::compile_step([&](const Tensor& x, const Tensor& y) {    // a whole training step as one graph
//     const Tensor loss = rg::cross_entropy(net.forward(x), y);
//     loss.backward();
//     optimizer.step();
//     optimizer.zero_grad();
//     return loss;
//   });
//
// Both are called like the function. What is refused: docs/compile.md; raised through refuse(), cannot_record(),
// NotRecordable.
//
// The function is called once for each kind of arguments (dtypes, shapes, strides, requires_grad, gradient mode) and
// recorded (tracer/function/function_recorder.h); later calls run the plan: the same operations in the same order, bit
// for bit. Anything besides operations on tensors (printing, counting, choosing a branch) happens at recording only.
// The function may write to tensors from outside (parameters, optimizer state, running statistics) and to .grad; each
// run changes them. Each run uses the current learning rates and other options of optimizers, and draws its own random
// numbers. An item() or data_ptr() of a computed value is an Error(bad_argument) that names the line.
// The results of compile() can be differentiated, also twice. They are views, or the same tensor, where the function's
// results are. An argument that the function writes to changes and gets its history as in an eager call. The results
// of compile_step() have no history: the step itself runs its backwards. An error while recording leaves everything
// outside unchanged; an error of the function's backward is thrown when that backward runs.
// Tensors from outside are recognised by object identity: one that differs from call to call must be an argument. A
// tensor causes another recording if its type or layout changed, if the hooks on the path of a backward in the
// function changed, or if a .grad that the function uses appeared, disappeared or has another layout. So does a
// non-numeric option of an optimizer (nesterov, amsgrad, maximize), and a module that was switched between training
// and evaluation.
// Saved-tensor hooks, hooks and user-defined functions run in each call, in their places, unless they are traceable:
// then they are recorded. Such code runs after the function has returned, also in later calls: it must not capture
// locals of the function by reference. A function is called eagerly if such code keeps its tensors, or if it does what
// no recording can follow (anomaly mode, AllowMutationOnSavedTensors, opaque code in a backward with create_graph, a
// hook that it adds to an argument or to a leaf from outside).
// The function itself is called while forward mode, anomaly mode or AllowMutationOnSavedTensors is on, inside another
// recorded function, and at the first call of a function that calls opaque functions. docs/compile.md lists all cases.
// Hooks on a result see the gradients that reach it from outside: uses inside the function are part of its own
// backward.
// A tensor on which compile()'s function calls retain_grad() has no .grad after a backward from outside.
// Concurrent calls of one step are serialised, except those that run user code.
// Limits: those of the recorder; at most kCaptures recordings, least recently used evicted first.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "tracer/backward/compile_backward.h"
#include "tracer/plan/segments.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

namespace ir {
struct Binding;
}

enum class FunctionKind : uint8_t { step, function };

/// The part independent of the function's type.
class FunctionCache {
 public:
  static constexpr size_t kCaptures = 16;
  using Function = std::function<Tensors(const Tensors&)>;

  struct Stats {
    int64_t captures = 0;   // graphs recorded, each with its plan
    int64_t hits = 0;       // calls served by an existing capture
    int64_t evictions = 0;  // captures evicted
    int64_t nodes = 0;      // of graph()
    int64_t eager = 0;      // calls of the function itself; see last_eager_reason()
    // Backwards whose gradients the call computed together with the loss (tracer/function/precomputed_gradients.h).
    int64_t precomputed = 0;
    int64_t precomputed_missed = 0;  // calls that computed gradients which no backward used
    LaunchStats launches = {};  // of its plans, if their executor records launches; else 0
  };

  explicit FunctionCache(FunctionKind kind);
  ~FunctionCache();
  /// A moved-from object has no graphs and no counts; calling it is an Error(bad_argument).
  FunctionCache(FunctionCache&&);
  FunctionCache& operator=(FunctionCache&&);

  /// function(arguments), recorded or run from a plan. The function must be the same each time.
  Tensors run(const Function& function, const Tensors& arguments,
              SourceLocation where = SourceLocation::current());

  Stats stats() const;
  /// The graph of the function that ran last, without precomputed gradients; null before the first call.
  /// backward_graph(): the graph of its backward, for gradients of all results; null if there is none.
  std::shared_ptr<const ir::Graph> graph() const;
  std::shared_ptr<const ir::Graph> backward_graph() const;
  /// What the inputs of graph() are bound to in a call with these arguments, for ir::replay; none before the first
  /// call.
  std::vector<ir::Binding> bindings(const Tensors& arguments) const;
  /// Why the last recording was needed: "first call", or what changed.
  std::string last_capture_reason() const;
  /// Why the last eager call ran the function itself; empty if there was none.
  std::string last_eager_reason() const;
  /// The segments of the plan that ran last: which are launched as graphs, and why they are cut, a line each
  /// (tracer/plan/segments.h).
  std::string segments() const;
  /// Forgets all graphs and counts.
  void reset();

 private:
  struct State;
  Tensors run_eagerly(const Function& function, const Tensors& arguments, std::string why);
  Tensors dry_run(const Function& function, const Tensors& arguments, std::string why);

  std::unique_ptr<State> state_;
};

/// A tensor argument, with the source location of the call.
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

/// Called like the wrapped function, which takes tensors and returns a tensor, several, or nothing. Errors name the
/// line of the call: the first argument carries it.
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

/// A training step, or another function whose results are not differentiated, as one plan.
template <class F>
Compiled<F> compile_step(F function) {
  return {std::move(function), FunctionKind::step};
}

}  // namespace retrograd
#pragma GCC visibility pop
