// The planner: makes the program of a plan from a graph.
//
//   1. steps of nodes and of groups of nodes              tracer/plan/planner.cc
//   2. registers, and places in the arena                 tracer/plan/register_assignment.cc, tracer/plan/arena.cc
//   3. spans, and unpacks that are folded into them       tracer/plan/spans.cc
//   4. unpacks that can begin early                    tracer/plan/unpack_prefetch.cc
//   5. segments that run as graphs of launches            tracer/plan/program_segments.cc
// Each is a function of the program so far. Start reading at make_program().
#pragma once

#include "tracer/plan/plan.h"
#include "tracer/plan/program.h"

namespace retrograd::inline v0 {

inline constexpr int kMaxSpanOperands = 3;

Program make_program(const PlanRequest& request);

/// Of each input of the graph, its index among the bindings of a run; -1: it is a slot.
std::vector<int32_t> binding_indices(const PlanRequest& request);

/// Of each node, the last node of the step that it runs in. Empty: each node is a step.
using StepEnds = std::vector<uint32_t>;

void assign_registers(Program& program, const PlanRequest& request, const StepEnds& step_ends);

class RegisterFile;
/// Finds the scratch memory of each kernel; it is not placed yet.
void find_scratch(Program& program, std::span<const ir::Binding> bindings);
/// Places values that only kernels see, and the kernels' scratch memory, in the arena if that adds at most
/// `most_waste` live bytes.
void place_in_arena(Program& program, RegisterFile& file, int64_t most_waste);

void choose_spans(Program& program);
/// Finds the spans that take over a value that a kernel computed in their register and that only they use.
void find_own_takes(Program& program);
void fold_unpacks(Program& program, std::span<const std::optional<SlotPlace>> slots);

/// `may_stop`: see PlanRequest.
void find_unpacks(Program& program, bool may_stop);
void find_segments(Program& program);

}  // namespace retrograd
