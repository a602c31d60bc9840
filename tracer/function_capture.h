// FunctionCapture: a recorded function made ready to run: its graph, its plan, what binds both to a call, and, of a differentiable function,
// its backwards.
//
//   step      results have no history (tracer/compile.h: compile_step)
//   function  the results of a run are linked to one tape record whose backward runs the plan of the backward graph (compile)
// A run of a function leaves a Saved: the values that its backward needs, checked for versions. A backward that does not retain the graph
// releases those of the records that it went through, as if these were on the tape themselves. A backward graph is recorded for each set of
// results that have a gradient; the first, for all of them, decides what is saved. An error of recording it is one of running it.
// Where gradients are to be differentiated again, both graphs are replayed into the current emitter.
// Beside the results the record has hidden ones, **ends** as these are: the base of a result that is a view, and the new value of an argument
// that was written to, whose place in the graph the argument takes over.
// A function whose tensors are kept by code of the user's that runs call is not recorded: tracer/function_kept.cc.
// Gradients may be computed with the results, where that is less work: tracer/function_ahead.h.
// Immutable but for the backwards added later, under a lock, and what is counted for guesses.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "ir/passes/recompute.h"
#include "tracer/compile.h"
#include "tracer/function_recorder.h"
#include "tracer/plan.h"

namespace retrograd {

/// What a recording depends on, of one tensor: an argument, or one from outside.
struct TensorLook {
  TensorType type;
  IntList strides;
  bool requires_grad, is_leaf, is_multi_output_view, is_no_grad_view, is_function_view, is_outdated;

  explicit TensorLook(const TensorImpl& x);
  /// Whether it looks so now.
  bool fits(const TensorImpl& x) const;
  bool operator==(const TensorLook& o) const;
  std::string text() const;
};

/// A leaf that a backward of the function's own reaches: its hooks are recorded as the objects that they are.
struct ReachedLeaf {
  RefPtr<TensorImpl> outside;  // null: an argument
  int argument;
  std::vector<RefPtr<Hook>> hooks;
  std::vector<bool> is_traceable;  // of these
  size_t effects;                  // how many nodes with effects stand before the gradient comes to it

  const TensorImpl& leaf(const Tensors& arguments) const {
    return outside ? *outside : arguments[static_cast<size_t>(argument)].impl();
  }
  /// Whether it has the same hooks now.
  bool fits(const Tensors& arguments) const;
  /// Whether a run that has begun calls the hooks that it has now: opaque ones that were removed are passed over.
  bool fits_run(const Tensors& arguments) const;
};

/// Where one of several tensors lies: what a recording depends on that writes to arguments, or begins with gradients.
struct TensorPlace {
  size_t memory, base;  // the first of the tensors with the same memory, with the same base
  int64_t offset, base_offset, bytes;
  TensorLook base_look;

  static std::vector<TensorPlace> of(const Tensors& tensors);
  bool operator==(const TensorPlace& o) const = default;
};

/// What a recording depends on, of a call.
struct CallLook {
  std::vector<TensorLook> arguments;
  std::vector<size_t> same_as;              // the first argument that is this tensor
  bool gradients;                           // gradient mode
  bool has_pair;                            // a default one of saved-tensor hooks,
  bool pair_is_pure;                        // whether nothing guards against it, and
  RefPtr<SavedTensorHooks> traceable_pair;  // which it is, if it is part of the graph

  explicit CallLook(const Tensors& arguments);
  /// What differs from `now`, in words; empty when nothing does.
  std::string difference(const CallLook& now) const;
};

class FunctionCapture : public std::enable_shared_from_this<FunctionCapture> {
 public:
  using Function = std::function<Tensors(const Tensors&)>;

  /// Records the function for arguments like these. `known`: of the opaque functions that it calls; RehearsalNeeded where that is not so.
  FunctionCapture(const Function& function, const Tensors& arguments, CallLook look, FunctionKind kind,
                  const FunctionRecorder::KnownCalls* known, SourceLocation where);
  ~FunctionCapture();
  FunctionCapture(const FunctionCapture&) = delete;

  /// Why it cannot serve a call; empty when it can.
  std::string misfit(const CallLook& look, const Tensors& arguments) const;
  /// `first`: with the numbers that the recording has read.
  Tensors run(const Tensors& arguments, bool first, SourceLocation where);

  /// Whether a run calls code of the user's: hooks, opaque functions, pairs.
  bool calls_code() const { return calls_code_; }
  const ir::Graph& graph() const { return planned_; }
  const Plan& plan() const { return *plan_; }
  /// Backwards whose gradients their forward had computed, and forwards that computed some which nobody took (tracer/function_ahead.h).
  std::pair<int64_t, int64_t> guesses() const;
  /// Of the results all of which have a gradient; null when there is none.
  const ir::Graph* backward_graph() const;

  /// The backward of a record that run() has made: see OpInfo::host_backward.
  static void run_backward(Record& record, std::span<TensorImpl* const> operands, Tensor* results);

 private:
  class NumbersOfRun;
  struct Saved;
  struct Backward;
  struct Ahead;
  // What a run gives or leaves behind: a result, then also bases of results and new values of arguments.
  struct End {
    Tensor recorded;                  // released where no backward can be recorded
    Edge edge = {};                   // of it, as at the recording
    RecordedFunction::Place place;    // undefined: not computed, but
    int argument = -1;                // an argument,
    RefPtr<TensorImpl> grad_of = {};  // the gradient that this leaf has,
    std::optional<size_t> grad = {};  // which is this of recorded_.grads,
    Tensor outside = {};              // a tensor from outside,
    int same_as = -1;                 // or an end before
    bool is_differentiable = false, is_leaf = false;
    bool is_multi_output_view = false, is_no_grad_view = false, is_function_view = false;
    bool is_outdated = false;   // a view whose memory was written to since it was made
    bool follows_base = false;  // a view that has its gradient through its base, which was written to
    int base = -1;              // of a view: the end that is its base; or the base of
    int base_argument = -1;     // this argument, or the argument itself; or
    Tensor base_outside = {};   // this tensor
    int rewrites = -1;          // the argument whose history this becomes, or that of its base
    bool rewrites_base = false;
  };

  std::string misplaced(const Tensors& arguments) const;
  Tensors grads_at_begin(const Tensors& arguments) const;
  std::vector<TensorPlace> places_of_grads(const Tensors& arguments, const Tensors& grads) const;
  bool grads_fit(const Tensors& arguments) const;
  void record(const Function& function, const Tensors& arguments, const FunctionRecorder::KnownCalls* known);
  const TensorImpl* kept_value() const;
  void check_kept() const;
  void check_argument_hooks() const;
  void forget_recording();
  void find_made_leaves();
  bool is_made_leaf(const Tensor& made) const;
  void make_plans(const Tensors& arguments);
  void note_reached(const FunctionRecorder::BegunLeaf& begun,
                    std::unordered_map<const TensorImpl*, std::vector<size_t>>& numbers);
  void check_hooks(const Tensors& arguments, size_t nodes_begun, SourceLocation where) const;
  void check_grad(const TensorImpl& leaf, const Tensors& arguments, size_t nodes_begun,
                  SourceLocation where) const;
  void look_at_results(const Tensors& given, Tensors results);
  using EndNumbers = std::unordered_map<const TensorImpl*, size_t>;  // the first of each recorded cell
  EndNumbers end_numbers() const;
  void find_base(size_t end, EndNumbers& numbers);
  bool is_view_of_written(const TensorImpl& view, const EndNumbers& numbers) const;
  void find_written();
  void find_inputs();
  void record_backwards();
  /// How a backward comes to the ends: not at all, or with a gradient, or without one, for which functions of the user's run all the same.
  enum class Arrival : uint8_t { none, without_gradient, with_gradient };
  using Arrivals = std::vector<Arrival>;
  void find_functions();
  Arrivals all_ends() const;
  Arrivals arrivals_at(const Record& record, std::span<TensorImpl* const> cotangents) const;
  std::unique_ptr<Backward> record_backward(const Arrivals& arrivals);
  void note_user(size_t saved, const Record* user);
  void plan_forward(const Tensors& arguments);
  void find_recompute();
  ir::Graph graph_to_plan(const RecordedFunction& backward) const;
  std::vector<int32_t> given_inputs(const RecordedFunction& backward) const;
  void plan_backward(Backward& backward);
  ir::Graph joined(const RecordedFunction& backward) const;
  void find_ahead();
  int64_t bytes_not_saved() const;
  void plan_ahead();
  void expect_plain_backward();
  std::optional<Tensors> run_ahead(const std::vector<ir::Binding>& bindings, std::span<const Number> numbers);
  Backward& backward_for(const Record& record, std::span<TensorImpl* const> cotangents);
  /// What an input that is the gradient of a leaf is bound to.
  static Tensor grad_memory(TensorImpl& leaf);
  std::vector<ir::Binding> bind(const Tensors& arguments) const;
  std::vector<WrittenInput> written_inputs(const Tensors& arguments) const;
  void give_grads(const Tensors& arguments, const Tensors& outputs) const;
  void settle_recorded() noexcept;
  Tensors run(const Tensors& arguments, NumbersOfRun& read, SourceLocation where);
  void write_back(const std::vector<ir::Binding>& bindings, const Tensors& outputs) const;
  Tensors bindings_to_keep(const std::vector<ir::Binding>& bindings) const;
  std::shared_ptr<Saved> save(const std::vector<ir::Binding>& bindings, Tensors keep, const Tensors& outputs,
                              const std::vector<Number>& numbers);
  Tensors results_of(const std::vector<ir::Binding>& bindings, const Tensors& outputs) const;
  void link(Tensors& results, const std::vector<ir::Binding>& bindings, std::shared_ptr<Saved> saved,
            SourceLocation where);
  void take_over(const Tensors& arguments, const Tensors& results, SourceLocation where) const;
  void attach_views(const Tensors& arguments, const Tensors& results) const;
  Tensors gradients_of(const Backward& backward, std::span<TensorImpl* const> cotangents, const Saved& saved,
                       Tensors values, SourceLocation where) const;
  Tensors replay_backward(const Backward& backward, std::span<TensorImpl* const> cotangents,
                          const Saved& saved, const Tensors& values, std::span<const Number> numbers,
                          SourceLocation where) const;
  std::vector<ir::Binding> bind_backward(const Backward& backward, std::span<TensorImpl* const> cotangents,
                                         const Tensors& saved) const;

  const FunctionKind kind_;
  const SourceLocation where_;  // of the call that was recorded
  CallLook look_;
  std::optional<std::vector<TensorPlace>> places_;  // where they matter
  RecordedFunction recorded_;                       // its graph as recorded: gradients of gradients replay it
  ir::Graph planned_;
  std::vector<std::pair<TensorImpl*, TensorLook>> outside_;  // kept alive by recorded_
  std::unordered_set<const Storage*> written_;               // memory of outside_ that a run writes to
  std::vector<std::pair<TensorLook, TensorPlace>> grads_;    // that a run begins with
  std::vector<ReachedLeaf> reached_;
  std::vector<Number> numbers_;
  std::vector<Source> sources_;
  std::unique_ptr<Plan> plan_;
  std::vector<End> ends_;
  size_t results_ = 0;  // of the function: the first of the ends

  // Of a differentiable function: the recorded tape, kept for further backwards.
  std::vector<int32_t> inputs_;      // that want a gradient: the record's operands
  std::vector<size_t> made_leaves_;  // ends that are leaves which the function makes: further operands
  Tensors leaves_;                   // on the recorded tape, of all operands
  std::unique_ptr<FunctionRecorder> recorder_;
  std::mutex mutex_;
  std::map<Arrivals, std::unique_ptr<Backward>> backwards_;
  bool has_functions_ = false;  // of the user's, on the recorded tape
  bool calls_code_ = false;
  bool numbers_are_open_ = true;  // those that the recording has read: the first run settles them
  ir::Recompute recompute_;
  std::unique_ptr<Ahead> ahead_;  // null: cannot be
  std::vector<std::unordered_set<const Record*>>
      users_;  // of each saved value: the records whose rules ask for it
};

}  // namespace retrograd
