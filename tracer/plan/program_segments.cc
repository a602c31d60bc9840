// The segments of a program: its steps as input of find_segments() (tracer/plan/segments.h), and the reason why a
// step cuts them.
#include <algorithm>

#include "engine/bookkeeping.h"
#include "tracer/plan/planner.h"

namespace retrograd::inline v0 {
namespace {

// Whether a launch reads its current numbers whenever a graph that contains it is started, at the address that its
// attributes had at the recording. Executors that record launches ensure this for optimizer steps (also for several
// at once) and for random draws, except those within groups.
bool follows_numbers(const Program& program, const Step& s) {
  const OpInfo& op = *program.node(s).op;
  if (s.kind != StepKind::fused) return !s.attrs.is_patched || op.is(Trait::updates) || op.is(Trait::random);
  return op.is(Trait::updates) || std::ranges::none_of(program.fused_of(s).attrs, &StepAttrs::is_patched);
}

// Why the executor cannot record a kernel; empty if it can.
std::string_view unrecordable(const Program& program, const Step& s) {
  const ir::Node& node = program.node(s);
  const auto type_of = [&](ir::ValueId v) {
    return v == ir::kNoValue ? TensorType{}
                             : program.layout.types[static_cast<size_t>(program.graph.type_index(v))];
  };
  std::vector<TensorType> operands, results;
  for (ir::ValueId v : program.graph.operands(node)) operands.push_back(type_of(v));
  for (int i = 0; i < s.results; ++i) results.push_back(type_of(node.first_result + i));
  return program.executor.host_work(*node.op, program.attrs.sample(s.attrs), operands, results);
}

// The work of the host in a step; empty: none.
std::string_view host_work(const Program& program, const Step& s) {
  const OpInfo* const op = program.node(s).op;
  switch (s.kind) {
    case StepKind::hook:
    case StepKind::function: return "it calls user code";
    case StepKind::unpack: return "it unpacks a saved value";
    case StepKind::accumulate_grad:
    case StepKind::retain_grad: return "it sets the gradient of a tensor";
    case StepKind::release:
    case StepKind::drop: return "it frees memory";
    case StepKind::code:
      return ops::puts_outside(*op) ? "it puts a value where user code sees it" : "it calls user code";
    case StepKind::host: return op->is(Trait::effect) ? "it calls user code" : "it runs on the host";
    case StepKind::view: return {};
    default: break;
  }
  if (!follows_numbers(program, s)) return "its numbers differ in each run";
  return s.kind == StepKind::fused ? std::string_view() : unrecordable(program, s);
}

SegmentStep segment_step(const Program& program, const Step& s) {
  SegmentStep step{s.kind == StepKind::view ? SegmentStep::Kind::view : SegmentStep::Kind::launch};
  step.name = program.node(s).op->name;
  step.why = host_work(program, s);
  if (!step.why.empty()) step.kind = SegmentStep::Kind::host;
  const std::span<const int32_t> all(program.registers_of(s), size_t{s.operands} + s.results + s.dying);
  step.operands = all.first(s.operands);
  step.results = all.subspan(s.operands, s.results);
  step.dying = all.last(s.dying);
  if (s.kind == StepKind::fused)
    step.into = program.fused_of(s).into;
  else
    for (int i = 0; i < s.results; ++i) step.into.push_back(s.computes_into(i));
  return step;
}

}  // namespace

void find_segments(Program& program) {
  std::vector<SegmentStep> steps;
  steps.reserve(program.steps.size());
  for (const Step& s : program.steps) steps.push_back(segment_step(program, s));
  program.segments = find_segments(steps, static_cast<int32_t>(program.layout.in_arena()));
}

}  // namespace retrograd
