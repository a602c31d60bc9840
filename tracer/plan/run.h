// PlanRun: one run of a plan: its inputs and its progress.
//
//   PlanRun run(plan, bindings, numbers, slots, observer);
//   if (run.go()) return run.outputs();
// User code that a step calls may change the rest of the run. An observer is then notified, and may stop the run
// before a node; go() returns false, and values are read with value(). The destructor empties the registers, however
// the run ended, and returns the frame to the plan.
//
// The loop is run_to() in run.cc; launches are in launcher.h, graphs of launches in graph_runner.h, forecast and
// measurement of memory in forecast.h and run_meter.h, early unpacks in unpack_prefetch.h.
#pragma once

#include "engine/tape.h"
#include "ir/replay.h"
#include "tracer/plan/launcher.h"
#include "tracer/plan/plan.h"

namespace retrograd::inline v0 {

class PlanRun;
class UnpackPrefetcher;

class RunObserver {
 public:
  static constexpr uint32_t kGoOn = ~uint32_t{0};
  virtual ~RunObserver() = default;
  /// User code has changed any hooks, packed slots or gradients (annotation_changes) while a step ran. Returns the
  /// node before which the run must stop.
  virtual uint32_t annotations_changed(const PlanRun& run) = 0;
  /// The backward of a user function, node `node`, did not return an expected gradient: the run stops after it.
  virtual void gradient_missing(uint32_t node, Tensors given) = 0;
};

class PlanRun {
 public:
  /// `bindings`: of the inputs of the graph that are not slots, in order. `numbers`: values of all expressions of the
  /// graph for this run.
  PlanRun(const Plan& plan, std::vector<ir::Binding> bindings, std::span<const Number> numbers,
          SavedSlots slots = {}, RunObserver* observer = nullptr);
  ~PlanRun();
  PlanRun(const PlanRun&) = delete;

  /// Runs to the end; false: the observer has stopped it. Errors tell what was differentiated.
  bool go() { return go_to(program_.steps.size()); }
  /// Runs, one by one, the steps that have nodes below `node`. go() then runs the others.
  bool go_before(uint32_t node);
  Tensors outputs() const;
  /// The output, which the run then no longer holds.
  Tensor take_output(size_t number);
  /// Whether the run may be interrupted between steps: it is neither measured nor a graph of launches.
  bool may_pause() const { return !one_by_one_ && !runs_graphs(); }
  /// After a step has thrown: of each binding, the tensor that it had, unless it has been released since.
  Tensors inputs_left() const;
  /// A value of the graph after the run has stopped (PlanRequest::may_stop); undefined if there is none.
  Tensor value(ir::ValueId id) const;
  void empty_registers() { frame_->clear(program_.layout.in_arena()); }
  /// The number of nodes that have begun; nodes_done(): the number that have finished, if one threw.
  size_t nodes_begun() const { return size_t{program_.steps[next_].node} + 1; }
  size_t nodes_run() const { return program_.first_node(program_.steps[next_]); }

  // For tracer/plan/.
  const Plan& plan() const { return plan_; }
  const Program& program() const { return program_; }
  const Frame& frame() const { return *frame_; }
  Frame& frame() { return *frame_; }
  const SavedSlots& slots() const { return slots_; }
  const std::vector<ir::Binding>& bindings() const { return bindings_; }
  Launcher& launcher() { return launcher_; }
  /// Whether segments run as graphs.
  bool runs_graphs() const { return program_.records_launches && !one_by_one_; }
  /// Runs the steps before `end`; false: the run has been stopped.
  bool run_to(size_t end);
  /// Notes that the steps up to `end` have run in another way.
  void skip_to(size_t end) { next_ = end; }
  /// Runs one step, without freeing the values that die in it.
  void run_step(const Step& s);
  /// Begins the unpacks that are due before the next step.
  void begin_unpacks();

 private:
  static constexpr uint32_t kGoOn = RunObserver::kGoOn;
  bool go_to(size_t end);
  void spans(size_t end);
  void drop_dying(const Step& s);
  void unpack(const Step& s);
  void hook(const Step& s);
  void function(const Step& s);
  void accumulate(const Step& s);
  std::vector<TensorImpl*> give_operands(const Step& s, Tensors& operands) const;
  void take_results(const Step& s, Tensors& results);
  void tell_observer();

  const Plan& plan_;
  const Program& program_;
  const SavedSlots slots_;
  RunObserver* const observer_;
  std::vector<ir::Binding> bindings_;
  std::unique_ptr<Frame> frame_;
  Launcher launcher_;
  std::unique_ptr<UnpackPrefetcher> prefetcher_;
  size_t next_ = 0;             // the current step
  uint32_t stop_node_ = kGoOn;  // before which the run stops
  uint64_t seen_changes_ = annotation_changes;
  bool one_by_one_;  // span steps run one at a time, and no segment runs as a graph
};

/// Runs a plan without slots to its end.
Tensors run_plan(const Plan& plan, std::vector<ir::Binding> bindings, std::span<const Number> numbers);

}  // namespace retrograd
