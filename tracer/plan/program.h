// Program: the contents of a plan, as plain data. The planner makes it (tracer/plan/planner.h); then it is immutable,
// and any number of runs read it at once.
//
//   Step      one node, or a group of nodes that run as one kernel: the kind of work, its kernel, its registers.
//             Between them are steps that empty the slots of a record (release) and steps that free registers for a
//             run that may stop (drop).
//   Register  the place of a value during a run. Values of one type whose lifetimes do not overlap share a register.
//   Slot      a saved value, addressed as slot `index` of record `record` among the records passed to a run.
//   Span      an elementwise step on few contiguous elements of one type: it only calls the kernel's inner loop. An
//             unpack directly before it, whose value only it uses, is folded into it: it reads the saved cell in
//             place.
//
// The registers of a step are in `registers` from Step::first_register on: operands, results, then those whose value
// dies in the step.
// Start reading at Step and Program.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "engine/executor.h"
#include "ir/graph.h"
#include "tracer/plan/attr_table.h"
#include "tracer/plan/segments.h"

namespace retrograd::inline v0 {

enum class StepKind : uint8_t {
  span,
  kernel,
  fused,
  view,
  host,
  code,
  unpack,
  hook,
  function,
  accumulate_grad,
  retain_grad,
  release,
  drop
};

struct Step {
  union {
    Kernel kernel;
    SpanKernel span;
    uint64_t record;  // unpack, release
  };
  StepAttrs attrs;
  uint32_t first_register;
  uint32_t node;  // in the graph; of a group, the last node
  union {
    uint32_t elements;  // span
    // Hook, function, accumulate_grad, retain_grad, code: index into the bindings; fused: into Program::fused.
    int32_t bound;
    uint32_t slot;      // unpack
    int32_t scratch;    // kernel: into Program::scratch; -1: it needs none
  };
  uint16_t operands, results, dying;
  StepKind kind;
  uint8_t item;      // span: bytes of an element
  // The operand that dies here and whose register, and memory if permitted, the result takes over; -1: none.
  int8_t takes;
  // Bit i: result i is computed into the memory that its register holds: the arena or a written input.
  uint8_t into;
  bool takes_own;    // span: the memory that it takes over has not been visible elsewhere

  bool computes_into(int result) const { return result < kMaxOutputs && into >> result & 1; }
};

/// A group of nodes as one step.
struct FusedStep {
  std::unique_ptr<FusedKernel> kernel;
  std::vector<StepAttrs> attrs;  // of its nodes
  std::vector<ir::ValueId> inputs, outputs;
  std::vector<int16_t> takes;  // of each output, as Step::takes
  std::vector<bool> into;      // of each output, as Step::into
  int32_t scratch = -1;        // into Program::scratch
};

/// Scratch memory of a kernel.
struct ScratchPiece {
  int64_t bytes, offset;  // in the arena; -1: the kernel allocates it
};

/// A slot that a span reads without an unpack.
struct FoldedSlot {
  uint32_t record, slot;
  uint32_t offset;  // in bytes, from the record, so that the record need not be read
  uint32_t ahead;   // the record of a folded slot some steps later, for the prefetch of its cache line
};

/// A step that calls an unpack hook.
struct UnpackStep {
  uint32_t step, earliest;  // earliest: the step before which its payload exists
  int32_t pack;             // the binding of the code that makes the payload in this plan; -1: it exists before the run
};

/// Types and places of the registers.
struct RegisterLayout {
  std::vector<TensorType> types;           // the distinct types of the graph, with sizes
  std::vector<int32_t> type_of;            // of each register, into types
  std::vector<int64_t> arena_offsets;      // of the first registers, which are in the arena
  int64_t arena_bytes = 0;

  size_t count() const { return type_of.size(); }
  size_t in_arena() const { return arena_offsets.size(); }
  const TensorType& type(size_t r) const { return types[static_cast<size_t>(type_of[r])]; }
};

struct Program {
  Program(const ir::Graph& graph, Executor& executor) : graph(graph), executor(executor) {}

  const ir::Graph& graph;
  Executor& executor;
  std::vector<Step> steps;
  std::vector<FusedStep> fused;
  std::vector<int32_t> registers;  // operand -1: none; below -1: a folded slot, number -2 - r
  RegisterLayout layout;
  AttrTable attrs;
  std::vector<FoldedSlot> folded;
  std::vector<UnpackStep> unpacks;
  std::vector<ScratchPiece> scratch;
  std::vector<std::pair<uint32_t, int32_t>> tensor_inputs;  // index into the bindings, register; -1: unused
  std::vector<int32_t> output_registers;
  std::vector<int32_t> value_registers;  // of each value; only for a plan whose runs may stop
  bool records_launches = false;
  Segments segments;  // for a plan that records launches

  const ir::Node& node(const Step& s) const { return graph.nodes()[s.node]; }
  const FusedStep& fused_of(const Step& s) const { return fused[static_cast<size_t>(s.bound)]; }
  FusedStep& fused_of(const Step& s) { return fused[static_cast<size_t>(s.bound)]; }
  const int32_t* registers_of(const Step& s) const { return registers.data() + s.first_register; }
  const FoldedSlot& folded_slot(int32_t r) const { return folded[static_cast<size_t>(-2 - r)]; }
  size_t first_node(const Step& s) const {
    return s.kind == StepKind::fused ? s.node + 1 - fused_of(s).attrs.size() : s.node;
  }
  /// Index into `scratch` for the kernel of a step; -1: none.
  int32_t scratch_of(const Step& s) const {
    return s.kind == StepKind::fused ? fused_of(s).scratch : s.kind == StepKind::kernel ? s.scratch : -1;
  }
  /// Whether a result may be computed in the memory of an operand.
  bool may_overwrite(const Step& s, int operand, int result) const;
  /// The device whose memory counts for the peak of a run.
  Device device() const;
};

/// For cells of which only the layout is used: views of any extent fit in.
inline RefPtr<Storage> storage_without_memory() {
  return Storage::wrap(nullptr, std::numeric_limits<int64_t>::max(), nullptr, nullptr);
}

}  // namespace retrograd
