// Plan: a captured graph made ready to run for one set of sizes, and its replay (plan_run.cc).
//
//   Step     one node: what kind of work, its kernel, operand and result registers, registers whose value dies here. Between them, steps
//            that empty the slots of a record (release) and registers that were kept for leaving the graph (drop).
//   Register where a value is during a run. Values of one type whose lifetimes do not overlap share a register.
//   Frame    the registers of one run: prepared cells with type and strides set, to which only memory is given. A plan is immutable; frames
//            are leased, so concurrent and nested runs of one plan do not meet.
// What only kernels see lies in the arena, one block of memory that a run takes at its beginning, at places that were planned
// (tracer/placement.h): such a register has its memory from the start to the end. The memory of all others is allocated when the value is
// computed and freed at its last use. An elementwise step takes over the register of an operand that dies in it, and writes over its memory
// when nobody else sees that. An unpacked value is the saved cell itself: nothing is copied.
// Only a whole step has an arena. Backwards free saved values as they go, and results of forwards pile up: beside either an arena would stand
// from the beginning to the end, and the peak would be above that of an eager run.
// A span step is an elementwise step on few contiguous elements of one type: it calls the kernel's inner loop and nothing else. An unpack
// directly before it whose value only it uses is folded into it: it reads the saved cell where it is.
// What a recorded function writes to memory from outside is computed there, when nothing reads the old value any more (**written input**).
// A fused step is a group of nodes (ir/passes/fuse.h): values inside it have no register.
// What unpack hooks bring from elsewhere is begun some steps before they are called (tracer/prefetch.h).
// Numbers in attributes that are symbols are filled in at each run, in copies that belong to the frame.
// The plan of a whole step whose executor records launches runs as graphs of launches (tracer/segments.h, tracer/plan_graphs.h). Its frames keep
// the arena, whatever it wastes, and results do not take over the memory of operands: all lies where it lay in the run before.
// Limits: one executor, hence one device beside the CPU.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/executor.h"
#include "ir/passes/group_memory.h"
#include "ir/replay.h"
#include "tracer/recorder.h"
#include "tracer/segments.h"
#include "tracer/trail.h"

namespace retrograd {

/// What an input of a captured graph is bound to in one run.
class Binder {
 public:
  Binder(const BackwardRequest& request, const Reached& reached) : request_(request), reached_(reached) {}
  ir::Binding operator()(const Source& source);

 private:
  Hook* hook_of(const Source& source);
  Hook* live_hook(const HookList& hooks, uint32_t index);

  const BackwardRequest& request_;
  const Reached& reached_;
  // The hook that was found last: the next one lies behind it, mostly.
  const HookList* list_ = nullptr;
  size_t at_ = 0;       // in all(), behind it
  uint32_t index_ = 0;  // among the live ones, behind it
};

/// The executor that a plan of this graph is made for: that of the device on which values are, else the CPU's. It also runs what such a graph
/// has on the CPU.
Executor& executor_for(const ir::Graph& graph);

class HostCode;
class RegisterFile;
struct PlacedStep;

/// Of a recorded function: an input whose memory shall hold a value in the end. Input and value are of one type, the input row-major.
struct WrittenInput {
  ir::ValueId input, value;
};

/// A run of a recorded function, as whoever started it sees it.
struct FunctionRun {
  size_t nodes_run = 0;    // the first ones of the graph: all, unless something was thrown
  size_t nodes_begun = 0;  // the same, and the one that threw
  /// While it runs: how many have begun.
  std::function<size_t()> begun = {};
  /// Called when code of the user's has changed hooks of anything (annotation_changes), with how many nodes have begun.
  std::function<void(size_t nodes_begun)> hooks_changed = {};
};

class Plan {
 public:
  /// `values`: of every expression of graph.symbols at these sizes. Graph, sources and rules must outlive the plan.
  /// `arena_waste`: what only kernels see lies in an arena if at most so many more bytes are live with it than without; else, or if not
  /// given, in none. `groups`: kernels of the graph's groups that are made already; the plan takes them.
  Plan(const ir::Graph& graph, const std::vector<Source>& sources, const std::vector<RuleRun>& rules,
       const DriveLog& log, std::span<const Number> values, Executor& executor,
       std::span<const WrittenInput> writes = {}, std::optional<int64_t> arena_waste = {},
       ir::GroupMemories* groups = nullptr);
  ~Plan();
  Plan(const Plan&) = delete;

  /// Runs every step in order and returns the graph's outputs. `numbers`: values of all expressions for this run. Unless
  /// request.retain_graph, each slot is emptied when it is unpacked, and those that are not, when their record is done.
  /// Where code of the user's changed what is to come (a hook added to a later record, a gradient that is undefined for once), the run
  /// leaves the graph and goes on eagerly, to the same end.
  struct Outcome {
    Tensors gradients;
    bool left;
  };
  Outcome run(const BackwardRequest& request, const Reached& reached, const Trail& trail,
              std::span<const Number> numbers) const;
  /// Of a recorded function: `bindings` parallel to the graph's inputs, none of which is a slot. Nothing leaves the graph.
  Tensors run(std::vector<ir::Binding> bindings, std::span<const Number> numbers,
              FunctionRun* of = nullptr) const;

  LaunchStats launch_stats() const;
  /// Its segments and the reasons of its cuts, a line each; why there are none, if so.
  std::string segments_text() const;

 private:
  struct Frame;
  struct Recordings;
  struct Run;
  class Forecast;
  class Watch;
  class Early;
  enum class Kind : uint8_t {
    span,
    kernel,
    fused,
    view,
    host,
    unpack,
    hook,
    function,
    accumulate_grad,
    retain_grad,
    release,
    drop
  };
  // Of a node: as they are, or with numbers that are filled in at each run.
  struct Attrs {
    union {
      void* fixed = nullptr;
      size_t patched_at;  // where the frame's copy begins
    };
    bool is_patched = false;
  };
  struct Step {
    union {
      Kernel kernel;
      SpanKernel span;
      uint64_t place;  // unpack, release: the record in the walk
    };
    Attrs attrs;
    uint32_t first_register;  // operands, then results, then the dying, in registers_
    uint32_t node;            // in the graph
    union {
      uint32_t elements;  // span
      int32_t
          bound;  // hook, function, accumulate_grad, retain_grad: index into the bindings of a run; fused: into fused_
      uint32_t slot;  // unpack
      int32_t room;   // kernel: into rooms_; -1: it needs none
    };
    uint16_t operands, results, dying;
    Kind kind;
    uint8_t item;  // span: bytes of an element
    // Operand that dies here and whose register, and memory if it may, the result takes over; -1: none.
    int8_t takes;
    uint8_t
        into;  // bit i: result i is computed into the memory that its register holds: of the arena, a written input's
    bool takes_own;  // span: nobody else can have seen the memory that it takes over, the register's own

    bool computes_into(int result) const { return result < kMaxOutputs && into >> result & 1; }
  };
  // A group of nodes as one step.
  struct Fused {
    std::unique_ptr<FusedKernel> kernel;
    std::vector<Attrs> attrs;  // of its nodes
    std::vector<ir::ValueId> inputs, outputs;
    std::vector<int16_t> takes;  // of each output, as of a step
    std::vector<bool> into;
    int32_t room = -1;  // into rooms_
  };
  // What a kernel needs for itself while it runs.
  struct Room {
    int64_t bytes, offset;  // in the arena; -1: the kernel allocates it
  };
  // A number of an attribute that is filled in at each run.
  struct Patch {
    uint32_t at;  // in a frame's bytes
    int32_t expression;
  };

  Kind kind_of(const ir::Node& node) const;
  void plan_step(const ir::Node& node, std::span<const Number> values);
  void plan_nodes(const std::vector<RuleRun>& rules, std::span<const Number> values,
                  ir::GroupMemories* groups);
  bool plan_group(size_t begin, size_t end, std::span<const Number> values, ir::GroupMemories& groups);
  Attrs plan_attrs(const ir::Node& node, std::span<const Number> values);
  void find_patches(const ir::Node& node, Attrs& attrs);
  void assign_registers(std::span<const WrittenInput> writes, std::optional<int64_t> arena_waste);
  void place_in_arena(RegisterFile& file, int64_t most_waste);
  PlacedStep placed_step(const Step& step, std::span<const ir::ValueId> values) const;
  void ask_for_scratch();
  int32_t room_of(const Step& s) const {
    return s.kind == Kind::fused ? fused_of(s).room : s.kind == Kind::kernel ? s.room : -1;
  }
  size_t first_node(const Step& s) const {
    return s.kind == Kind::fused ? s.node + 1 - fused_of(s).attrs.size() : s.node;
  }
  Fused& fused_of(const Step& s) { return fused_[static_cast<size_t>(s.bound)]; }
  const Fused& fused_of(const Step& s) const { return fused_[static_cast<size_t>(s.bound)]; }
  bool may_lie_over(const Step& step, int operand, int result) const;
  bool may_overwrite(int32_t step_end, const WrittenInput& w) const;
  void place(Step& step, RegisterFile& file);
  void place_fused(Step& step, RegisterFile& file);
  void place_with_drops(RegisterFile& file);
  std::vector<ir::ValueId> ending_before(const Step& step, RegisterFile& file) const;
  void choose_spans();
  void find_own_takes();
  void fold_unpacks();
  void find_unpacks();
  void find_segments();
  SegmentStep segment_step(const Step& s) const;
  std::string_view host_work(const Step& s) const;
  bool follows_numbers(const Step& s) const;
  bool run_steps(Run& run) const;
  Device device() const;  // whose memory its peak is about
  std::unique_ptr<Frame> new_frame() const;

  const ir::Graph& graph_;
  const std::vector<Source>& sources_;
  const DriveLog& log_;
  Executor& executor_;
  // A step that calls an unpack hook.
  struct UnpackStep {
    uint32_t step, earliest;  // earliest: before which its payload is there
    const HostCode* pack;     // that makes the payload in this plan; null: it is there beforehand
  };
  std::vector<Step> steps_;
  std::vector<UnpackStep> unpacks_;
  std::vector<Fused> fused_;
  std::vector<uint32_t> step_ends_;  // of each node, the last of its step; empty: each is one
  std::vector<int32_t> registers_;   // operand -1: none; below: a slot, number -2 - r of folded_
  struct SlotRef {
    uint32_t place, slot, offset;  // offset: in bytes, from the record, which then need not be read
    uint32_t ahead;                // the record of one some steps later, fetched in advance
  };
  static constexpr size_t kAhead = 8;  // folded slots that are passed until then
  std::vector<SlotRef> folded_;
  std::vector<int32_t> register_types_;  // of each register, into cell_types_
  std::vector<int64_t> arena_offsets_;   // of the first registers: those in the arena
  int64_t arena_bytes_ = 0;
  std::vector<Room> rooms_;
  std::vector<TensorType> cell_types_;  // the distinct types of the graph, concrete
  std::vector<uint32_t> bound_;         // the inputs that a run binds beforehand: all but slots
  std::vector<int32_t> bound_index_;    // of each input, into bound_
  std::vector<std::pair<uint32_t, int32_t>> tensor_inputs_;  // index into the bindings of a run, register
  std::vector<int32_t> output_registers_;
  std::vector<int32_t> value_registers_;  // of each value, where a run may leave the graph
  std::vector<std::unique_ptr<std::byte[]>> attrs_;
  std::vector<Patch> patches_;
  std::vector<std::byte> patched_attrs_;  // what a frame's copies start from
  const bool records_;                    // launches are recorded
  Segments segments_;
  mutable std::mutex stats_mutex_;
  mutable LaunchStats stats_;
  mutable std::vector<std::string> notes_;  // of each segment, why it is not a graph though it could be
  mutable std::atomic<Frame*> spare_{nullptr};
};

}  // namespace retrograd
