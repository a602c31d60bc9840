// Plan: a graph made ready to run for one set of sizes. A run is a PlanRun (tracer/plan/run.h).
//
//   Program  what runs: steps, registers, attributes (tracer/plan/program.h). Immutable.
//   Frame    the registers of one run: prepared cells with type and strides set, which only need memory. Frames are
//            leased, so concurrent and nested runs of one plan never share one.
// Memory. Values that only kernels see are stored in the arena, one block that a run allocates at its beginning, at
// planned offsets (tracer/plan/placement.h). The memory of all other values is allocated when the value is computed
// and freed at its last use. An elementwise step takes over the register of an operand that dies in it, and
// overwrites its memory if nothing else sees it. An unpacked value is the saved cell itself: nothing is copied. Only
// a whole step has an arena: backwards free saved values progressively, and results of forwards accumulate; in either
// case an arena held for the whole run would raise the peak above that of an eager run.
// A value that a recorded function writes to memory from outside is computed there if nothing reads the old value
// afterwards (**written input**). Numbers in attributes that are symbols are filled in for each run, in copies that
// belong to the frame.
// The plan of a whole step whose executor records launches runs as graphs of launches, CUDA graphs
// (tracer/plan/graph_runner.h).
//
// A plan does not depend on tapes, backwards and recorded functions. The caller provides everything: slots of records
// (SavedSlots), inputs (ir::Binding), and an observer that may stop a run.
// Limits: one executor, hence one device besides the CPU.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ir/passes/group_memory.h"
#include "ir/replay.h"
#include "tracer/plan/program.h"

namespace retrograd::inline v0 {

struct Frame;

/// The device that a plan of this graph is made for: that on which values are, else the CPU.
Device device_for(const ir::Graph& graph);
/// The executor of that device. It also runs the nodes of such a graph on the CPU.
Executor& executor_for(const ir::Graph& graph);

/// The place of an input of kind slot: slot `index` of record `record` of a run, `offset` bytes from the record. With
/// offset 0: a tensor of the payload in a slot, for index SavedSlots::index(slot, part), or input `index` of a region
/// (SavedSlots::kRegions).
struct SlotPlace {
  uint32_t record, index, offset;
};
/// After the nodes below `node` have run, a run that empties slots empties those of this record.
struct SlotRelease {
  uint32_t record, node;
};
/// An input whose memory must hold a value after the run. Input and value have the same type, the input is row-major.
struct WrittenInput {
  ir::ValueId input, value;
};
/// A value that must still exist in a run that stops before node `node`.
struct KeptValue {
  ir::ValueId value;
  uint32_t node;
};

/// The input for making a plan. The graph must outlive the plan.
struct PlanRequest {
  const ir::Graph& graph;
  std::span<const Number> values;  // of every expression of graph.symbols at these sizes
  Executor& executor;

  /// Of each input; nullopt: it is bound. Empty: all are bound.
  std::span<const std::optional<SlotPlace>> slots = {};
  std::span<const SlotRelease> releases = {};  // in the order of nodes

  /// An observer may stop the run (RunObserver). Then values can be read, and groups of nodes end with `group_outputs`.
  bool may_stop = false;
  std::span<const KeptValue> kept = {};  // beyond their last use
  std::span<const ir::ValueId> group_outputs = {};

  /// What the inputs are bound to when it runs, or nothing: the layouts for which temporary memory is planned. An input
  /// whose layout is not known counts as row-major. No effect on results.
  std::span<const ir::Binding> bindings = {};
  std::span<const WrittenInput> writes = {};
  /// Values that only kernels see are stored in an arena if the arena adds at most this many live bytes. Otherwise,
  /// or if not given, there is no arena.
  std::optional<int64_t> arena_waste = {};
  ir::GroupMemories* groups = nullptr;  // kernels of the graph's groups made so far; the plan takes them
};

class Plan {
 public:
  explicit Plan(const PlanRequest& request);
  ~Plan();
  Plan(const Plan&) = delete;

  const Program& program() const { return program_; }
  LaunchStats launch_stats() const;
  /// The segments and the reasons of the cuts, a line each; or why there are none.
  std::string segments_text() const;

  // For tracer/plan/: a frame for a run, and notes on its segments.
  std::unique_ptr<Frame> lease_frame() const;
  void give_back(std::unique_ptr<Frame> frame) const;
  void count(const LaunchStats& of_run) const;
  /// Notes why segment `number` is not a graph though it could be.
  void note(size_t number, std::string why) const;

 private:
  const Program program_;
  mutable std::mutex stats_mutex_;
  mutable LaunchStats stats_;
  mutable std::vector<std::string> notes_;  // of each segment
  mutable std::atomic<Frame*> spare_{nullptr};
};

}  // namespace retrograd
