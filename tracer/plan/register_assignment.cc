// Assigns a register to each value of a program. See tracer/plan/planner.h and tracer/plan/register_file.h; start
// reading at assign_registers().
#include <algorithm>
#include <limits>

#include "tracer/plan/planner.h"
#include "tracer/plan/register_file.h"

namespace retrograd::inline v0 {
namespace {

class RegisterAssignment {
 public:
  RegisterAssignment(Program& program, RegisterFile& file)
      : program_(program), graph_(program.graph), file_(file) {}

  /// To be called for steps in order. `with_drops`: values kept beyond their last use get a separate step that drops
  /// them.
  void place_steps(bool with_drops);

 private:
  void place(Step& s);
  void place_node(Step& s);
  void place_group(Step& s);
  void place_results(Step& s);
  void find_taken_operand(Step& s);
  void let_die(Step& s, ir::ValueId v);
  std::vector<ir::ValueId> ending_before(const Step& s);
  void push_drops(const Step& before, std::vector<Step>& placed);

  Program& program_;
  const ir::Graph& graph_;
  RegisterFile& file_;
};

void RegisterAssignment::place_steps(bool with_drops) {
  if (!with_drops) {
    for (Step& s : program_.steps)
      if (s.kind != StepKind::release) place(s);
    return;
  }
  std::vector<Step> placed;
  for (Step& s : program_.steps) {
    if (s.kind != StepKind::release) {
      push_drops(s, placed);
      place(s);
    }
    placed.push_back(s);
  }
  program_.steps = std::move(placed);
}

std::vector<ir::ValueId> RegisterAssignment::ending_before(const Step& s) {
  const ir::Node& node = program_.node(s);
  if (s.kind != StepKind::fused) return file_.ending_before(s.node, graph_.operands(node), node.first_result);
  const ir::Node& first = graph_.nodes()[program_.first_node(s)];
  return file_.ending_before(s.node, program_.fused_of(s).inputs, first.first_result);
}

void RegisterAssignment::push_drops(const Step& before, std::vector<Step>& placed) {
  const std::vector<ir::ValueId> ending = ending_before(before);
  for (size_t begin = 0; begin < ending.size(); begin += kMaxOperands) {
    Step drop{};
    drop.kind = StepKind::drop;
    drop.node = before.node;
    drop.first_register = static_cast<uint32_t>(program_.registers.size());
    drop.dying = static_cast<uint16_t>(std::min(kMaxOperands, ending.size() - begin));
    for (ir::ValueId v : std::span(ending).subspan(begin, drop.dying))
      program_.registers.push_back(file_.free(v));
    placed.push_back(drop);
  }
}

void RegisterAssignment::place(Step& s) {
  s.first_register = static_cast<uint32_t>(program_.registers.size());
  if (s.kind == StepKind::fused)
    place_group(s);
  else
    place_node(s);
}

void RegisterAssignment::let_die(Step& s, ir::ValueId v) {
  if (!file_.dies(v, s.node)) return;
  program_.registers.push_back(file_.free(v));
  ++s.dying;
}

void RegisterAssignment::place_node(Step& s) {
  const ir::Node& node = program_.node(s);
  const auto operands = graph_.operands(node);
  for (ir::ValueId v : operands) program_.registers.push_back(file_.at(v));
  if (s.kind == StepKind::kernel) find_taken_operand(s);
  place_results(s);
  for (ir::ValueId v : operands) let_die(s, v);
  for (int i = 0; i < s.results; ++i) let_die(s, node.first_result + i);
}

// Finds results that are computed into existing memory, or into memory of an operand that dies.
void RegisterAssignment::find_taken_operand(Step& s) {
  const ir::Node& node = program_.node(s);
  for (int i = 0; i < s.results; ++i) {
    const ir::ValueId value = node.first_result + i, input = file_.target_of(value);
    if (input != ir::kNoValue) file_.take_over(value, input);
    if (input != ir::kNoValue || file_.is_placed(value)) s.into |= static_cast<uint8_t>(1u << i);
  }
  if (s.results != 1 || s.into || program_.records_launches) return;
  const auto operands = graph_.operands(node);
  const size_t count = std::min<size_t>(operands.size(), std::numeric_limits<int8_t>::max());
  for (size_t k = 0; k < count && s.takes < 0; ++k)
    if (file_.dies(operands[k], s.node) && program_.may_overwrite(s, static_cast<int>(k), 0) &&
        graph_.type_index(operands[k]) == graph_.type_index(node.first_result)) {
      s.takes = static_cast<int8_t>(k);
      file_.take_over(node.first_result, operands[k]);
    }
}

void RegisterAssignment::place_results(Step& s) {
  const ir::ValueId first = program_.node(s).first_result;
  for (int i = 0; i < s.results; ++i) {
    if (s.takes < 0 && !s.computes_into(i)) file_.take(first + i);
    program_.registers.push_back(file_.at(first + i));
  }
}

// Outputs take over registers as a node's result does: that of the written input, or of an input that dies.
void RegisterAssignment::place_group(Step& s) {
  FusedStep& f = program_.fused_of(s);
  for (ir::ValueId v : f.inputs) program_.registers.push_back(file_.at(v));
  for (size_t o = 0; o < f.outputs.size(); ++o)  // first: no other output may take such a register
    if (file_.is_placed(f.outputs[o])) {
      f.into[o] = true;
    } else if (const ir::ValueId input = file_.target_of(f.outputs[o]); input != ir::kNoValue) {
      f.into[o] = true;
      file_.take_over(f.outputs[o], input);
    }
  for (size_t o = 0; o < f.outputs.size(); ++o) {
    const ir::ValueId value = f.outputs[o];
    for (size_t k = 0; k < f.inputs.size() && f.takes[o] < 0 && !f.into[o] && !program_.records_launches; ++k)
      if (file_.dies(f.inputs[k], s.node) && graph_.type_index(f.inputs[k]) == graph_.type_index(value) &&
          program_.may_overwrite(s, static_cast<int>(k), static_cast<int>(o))) {
        f.takes[o] = static_cast<int16_t>(k);
        file_.take_over(value, f.inputs[k]);
      }
    if (f.takes[o] < 0 && !f.into[o]) file_.take(value);
  }
  for (ir::ValueId v : f.outputs) program_.registers.push_back(file_.at(v));
  for (ir::ValueId v : f.inputs) let_die(s, v);
}

// Whether the step that ends at this node may read the input while it computes the value in its memory.
bool may_overwrite_input(const Program& program, int32_t step_end, const WrittenInput& w) {
  const auto step = std::ranges::lower_bound(program.steps, static_cast<uint32_t>(step_end), {}, &Step::node);
  const auto index_of = [](const auto& list, ir::ValueId v) {
    return static_cast<int>(std::ranges::find(list, v) - list.begin());
  };
  if (step->kind == StepKind::fused) {
    const FusedStep& f = program.fused_of(*step);
    return program.may_overwrite(*step, index_of(f.inputs, w.input), index_of(f.outputs, w.value));
  }
  const ir::Node& node = program.node(*step);
  const auto operands = program.graph.operands(node);
  const int operand = index_of(operands, w.input);
  if (static_cast<size_t>(operand) == operands.size())
    return node.op->is(Trait::elementwise);  // a view of the input is read
  return program.may_overwrite(*step, operand, w.value - node.first_result);
}

}  // namespace

void assign_registers(Program& program, const PlanRequest& request, const StepEnds& step_ends) {
  const ir::Graph& graph = program.graph;
  RegisterFile file(graph, program.layout.type_of, step_ends);
  const bool keeps = request.may_stop || !request.kept.empty();
  if (keeps) file.keep(request.kept);
  if (program.records_launches) file.keep_viewed();
  file.reserve(request.writes, [&](int32_t step_end, const WrittenInput& w) {
    return may_overwrite_input(program, step_end, w);
  });
  find_scratch(program, request.bindings);
  if (request.arena_waste) place_in_arena(program, file, *request.arena_waste);
  const std::vector<int32_t> bindings = binding_indices(request);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ir::Input& input = graph.inputs()[i];
    if (input.kind != ir::Input::Kind::tensor) continue;
    if (request.may_stop || file.is_used(input.value)) file.take(input.value);
    program.tensor_inputs.push_back({static_cast<uint32_t>(bindings[i]), file.at(input.value)});
  }
  RegisterAssignment(program, file).place_steps(keeps);
  for (ir::ValueId v : graph.outputs()) program.output_registers.push_back(file.at(v));
  if (request.may_stop) program.value_registers = std::move(file).registers();
}

}  // namespace retrograd
