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
// Sizes of arguments that have differed between calls are symbols from then on: one recording serves all of them, with
// a plan for each set of sizes (DynamicSizes). A size that the function looks at as an integer (size(), sizes(),
// numel()) is fixed in the recording; sym_size() and the like keep it a symbol.
// Limits: those of the recorder.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>

#include "tracer/backward/compile_backward.h"
#include "tracer/function/memory_budget.h"
#include "tracer/function/parts.h"
#include "tracer/plan/segments.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class SizedFunction;
namespace ir {
struct Binding;
}

enum class FunctionKind : uint8_t { step, function };

/// Which sizes of arguments are symbols in a recording, so that one recording serves all of them. automatic: those that
/// have differed between calls.
enum class DynamicSizes : uint8_t { automatic, never, always };

struct CompileOptions {
  DynamicSizes dynamic = DynamicSizes::automatic;
  size_t recordings = 16;  // kept; the least recently used goes first
  size_t plans = 16;       // kept of one recording, one for each set of sizes
  // At each n-th call that a recording serves, the function is called once more, by several threads if calls are
  // concurrent, and must do what was recorded; else the call is an Error(bad_argument) that names the line
  // (docs/compile.md: "Checking a recording"). 0: as RETROGRAD_CHECK says, twin or twin:n; never without it.
  int64_t twin_calls = 0;
  // Each run also calls the functions of traceable pairs of saved-tensor hooks, and compares what they unpack with what
  // the graph does: other bits are an Error(bad_argument) that names the pair, the op, its line and the tensor
  // (docs/hooks.md). Also switched on by RETROGRAD_CHECK=pairs.
  bool check_pairs = false;
  // The most bytes that a step, or a call and its backward, may add (docs/memory_budget.md).
  MemoryBudget budget = {};
};

/// The part independent of the function's type.
class FunctionCache {
 public:
  using Function = std::function<Tensors(const Tensors&)>;

  struct Stats {
    int64_t captures = 0;   // graphs recorded, each with its plan
    int64_t hits = 0;       // calls served by an existing capture
    int64_t evictions = 0;  // captures evicted
    int64_t dropped = 0;    // captures dropped since a tensor from outside that they need is gone
    int64_t plans = 0;      // plans made, one per capture and set of sizes
    int64_t plan_evictions = 0;
    int64_t nodes = 0;  // of graph()
    int64_t eager = 0;  // calls of the function itself; see last_eager_reason()
    int64_t twins = 0;  // checks by CompileOptions::twin_calls
    // Backwards whose gradients the call computed together with the loss (tracer/function/precomputed_gradients.h).
    int64_t precomputed = 0;
    int64_t precomputed_missed = 0;  // calls that computed gradients which no backward used
    LaunchStats launches = {};       // of its plans, if their executor records launches; else 0
  };

  explicit FunctionCache(FunctionKind kind, CompileOptions options = {});
  /// Copies share graphs and counts.
  FunctionCache(const FunctionCache&) = default;
  FunctionCache& operator=(const FunctionCache&) = default;
  /// A moved-from object has no graphs and no counts; calling it is an Error(bad_argument).
  FunctionCache(FunctionCache&&);
  FunctionCache& operator=(FunctionCache&&);
  ~FunctionCache() = default;

  /// function(arguments), recorded or run from a plan. The function must be the same each time.
  Tensors run(const Function& function, const Tensors& arguments,
              SourceLocation where = SourceLocation::current()) const;

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
  /// What the recording that ran last has fixed, and what it reads at each run, a line each: sizes, guards, numbers with
  /// their lines, tensors from outside; empty before the first call.
  std::string explain() const;
  /// The memory of the plan that ran last, with a budget; else all zero.
  MemoryReport memory() const;
  /// The segments of the plan that ran last: which are launched as graphs, and why they are cut, a line each
  /// (tracer/plan/segments.h).
  std::string segments() const;
  /// Forgets all graphs and counts.
  void reset();

 protected:
  /// Error(bad_argument) for one that was moved from.
  void check_has_function(SourceLocation where) const;
  /// run() for a function whose arguments and results have structure.
  CallOutcome run_parts(const FunctionBody& body, const CallParts& arguments, SourceLocation where) const;

 private:
  struct State;
  CallOutcome run_checked(const FunctionBody& body, const CallParts& arguments, SourceLocation where) const;
  // What runs a call: `is_first`: it was recorded just now.
  struct Server {
    std::shared_ptr<SizedFunction> sized;
    bool is_first = false, is_twin_call = false;
    std::vector<RefPtr<TensorImpl>> pins = {};  // keep what the recording needs
  };
  void find_or_record(const FunctionBody& body, const CallParts& arguments, Server& server,
                      SourceLocation where) const;
  Server serve(const FunctionBody& body, const CallParts& arguments, SourceLocation where) const;
  void check_twin(const FunctionBody& body, const CallParts& arguments, const SizedFunction& recorded,
                  SourceLocation where) const;
  CallOutcome run_eagerly(const FunctionBody& body, const CallParts& arguments, std::string why) const;
  CallOutcome dry_run(const FunctionBody& body, const CallParts& arguments, std::string why) const;

  std::shared_ptr<State> state_;
};

namespace detail {
/// The line of a call; for a call through std::function, which is a line of the standard library, that of compile().
SourceLocation line_of_call(SourceLocation where, SourceLocation compiled_at);

}  // namespace detail

/// Called like the wrapped function: its arguments and results are made of tensors, and arguments of fixed parts, too
/// (tracer/function/parts.h). Of an overloaded function or a generic lambda, the first parameter is a tensor. Copies
/// share the function, recordings and counts, so it can be put into a std::function. Errors name the line of the call:
/// the first argument carries it.
template <class F>
class Compiled : public FunctionCache {
 public:
  Compiled(F function, FunctionKind kind, CompileOptions options, SourceLocation where)
      : FunctionCache(kind, options),
        function_(std::make_shared<F>(std::move(function))),
        compiled_at_(where) {}

  auto operator()(SourceLocation where = SourceLocation::current()) const {
    return call(std::tuple<>(), where);
  }
  template <class... Rest>
  auto operator()(detail::CallArgument<typename detail::ArgumentsOf<F>::First> first, Rest&&... rest) const {
    const SourceLocation where = first.where();
    return call(detail::arguments_for<F>(std::move(first).take(), std::forward<Rest>(rest)...), where);
  }

 private:
  template <class Arguments>
  auto call(Arguments arguments, SourceLocation where) const {
    check_has_function(where);
    return detail::call_by_parts(*function_, std::move(arguments),
                                 [&](const FunctionBody& body, const CallParts& parts) {
                                   return run_parts(body, parts, detail::line_of_call(where, compiled_at_));
                                 });
  }

  std::shared_ptr<F> function_;
  SourceLocation compiled_at_;
};

/// A function of tensors whose forward and backward run as plans.
template <class F>
Compiled<F> compile(F function, CompileOptions options = {},
                    SourceLocation where = SourceLocation::current()) {
  return {std::move(function), FunctionKind::function, options, where};
}

/// A training step, or another function whose results are not differentiated, as one plan.
template <class F>
Compiled<F> compile_step(F function, CompileOptions options = {},
                         SourceLocation where = SourceLocation::current()) {
  return {std::move(function), FunctionKind::step, options, where};
}

}  // namespace retrograd
#pragma GCC visibility pop
