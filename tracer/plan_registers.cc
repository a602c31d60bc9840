// Which register each value of a plan has: see tracer/plan.h and tracer/register_file.h. Start reading at assign_registers().
#include <algorithm>
#include <limits>

#include "ir/passes/memory_classes.h"
#include "tracer/plan_run.h"
#include "tracer/register_file.h"

namespace retrograd {

void Plan::assign_registers(std::span<const WrittenInput> writes, std::optional<int64_t> arena_waste) {
  RegisterFile file(graph_, register_types_, step_ends_);
  if (log_.may_leave) file.keep_arrived(log_);
  if (records_) file.keep_viewed();
  file.reserve(writes, [&](int32_t step_end, const WrittenInput& w) { return may_overwrite(step_end, w); });
  ask_for_scratch();
  if (arena_waste) place_in_arena(file, *arena_waste);
  for (size_t i = 0; i < graph_.inputs().size(); ++i) {
    const ir::Input& input = graph_.inputs()[i];
    if (input.kind != ir::Input::Kind::tensor) continue;
    if (log_.may_leave || file.is_used(input.value)) file.take(input.value);
    tensor_inputs_.push_back({static_cast<uint32_t>(bound_index_[i]), file.at(input.value)});
  }
  if (log_.may_leave) {
    place_with_drops(file);
  } else {
    for (Step& s : steps_)
      if (s.kind != Kind::release) place(s, file);
  }
  for (ir::ValueId v : graph_.outputs()) output_registers_.push_back(file.at(v));
  if (log_.may_leave) value_registers_ = std::move(file).registers();
}

// Whether a step may read the input where it computes the value.
bool Plan::may_overwrite(int32_t step_end, const WrittenInput& w) const {
  const auto step = std::ranges::lower_bound(steps_, static_cast<uint32_t>(step_end), {}, &Step::node);
  const auto index_of = [](const auto& list, ir::ValueId v) {
    return static_cast<int>(std::ranges::find(list, v) - list.begin());
  };
  if (step->kind == Kind::fused) {
    const Fused& f = fused_[static_cast<size_t>(step->bound)];
    return f.kernel->may_overwrite(index_of(f.inputs, w.input), index_of(f.outputs, w.value));
  }
  const ir::Node& node = graph_.nodes()[step->node];
  const auto operands = graph_.operands(node);
  const auto operand = static_cast<size_t>(index_of(operands, w.input));
  if (operand == operands.size()) return node.op->is(Trait::elementwise);  // a view of the input is read
  return ir::may_lie_over(*node.op, operands, operand, w.value - node.first_result);
}

std::vector<ir::ValueId> Plan::ending_before(const Step& s, RegisterFile& file) const {
  const ir::Node& node = graph_.nodes()[s.node];
  if (s.kind != Kind::fused) return file.ending_before(s.node, graph_.operands(node), node.first_result);
  const Fused& f = fused_of(s);
  const ir::Node& first = graph_.nodes()[s.node + 1 - f.attrs.size()];
  return file.ending_before(s.node, f.inputs, first.first_result);
}

void Plan::place_with_drops(RegisterFile& file) {
  std::vector<Step> placed;
  for (Step& s : steps_) {
    if (s.kind != Kind::release) {
      const std::vector<ir::ValueId> ending = ending_before(s, file);
      for (size_t begin = 0; begin < ending.size(); begin += kMaxOperands) {
        Step drop{};
        drop.kind = Kind::drop;
        drop.node = s.node;
        drop.first_register = static_cast<uint32_t>(registers_.size());
        drop.dying = static_cast<uint16_t>(std::min(kMaxOperands, ending.size() - begin));
        for (ir::ValueId v : std::span(ending).subspan(begin, drop.dying)) registers_.push_back(file.free(v));
        placed.push_back(drop);
      }
      place(s, file);
    }
    placed.push_back(s);
  }
  steps_ = std::move(placed);
}

// Outputs take over registers as a node's result does: of the written input, or of an input that dies.
void Plan::place_fused(Step& s, RegisterFile& file) {
  Fused& f = fused_[static_cast<size_t>(s.bound)];
  s.first_register = static_cast<uint32_t>(registers_.size());
  for (ir::ValueId v : f.inputs) registers_.push_back(file.at(v));
  for (size_t o = 0; o < f.outputs.size(); ++o)  // first: no other output may have such a register
    if (file.is_placed(f.outputs[o])) {
      f.into[o] = true;
    } else if (const ir::ValueId input = file.target_of(f.outputs[o]); input != ir::kNoValue) {
      f.into[o] = true;
      file.take_over(f.outputs[o], input);
    }
  for (size_t o = 0; o < f.outputs.size(); ++o) {
    const ir::ValueId value = f.outputs[o];
    for (size_t k = 0; k < f.inputs.size() && f.takes[o] < 0 && !f.into[o] && !records_; ++k)
      if (file.dies(f.inputs[k], s.node) && graph_.type_index(f.inputs[k]) == graph_.type_index(value) &&
          f.kernel->may_overwrite(static_cast<int>(k), static_cast<int>(o))) {
        f.takes[o] = static_cast<int16_t>(k);
        file.take_over(value, f.inputs[k]);
      }
    if (f.takes[o] < 0 && !f.into[o]) file.take(value);
  }
  for (ir::ValueId v : f.outputs) registers_.push_back(file.at(v));
  for (ir::ValueId v : f.inputs)
    if (file.dies(v, s.node)) {
      registers_.push_back(file.free(v));
      ++s.dying;
    }
}

void Plan::place(Step& s, RegisterFile& file) {
  if (s.kind == Kind::fused) return place_fused(s, file);
  const ir::Node& node = graph_.nodes()[s.node];
  const auto operands = graph_.operands(node);
  s.first_register = static_cast<uint32_t>(registers_.size());
  for (ir::ValueId v : operands) registers_.push_back(file.at(v));
  for (int i = 0; i < s.results && s.kind == Kind::kernel; ++i) {
    const ir::ValueId value = node.first_result + i, input = file.target_of(value);
    if (input != ir::kNoValue) file.take_over(value, input);
    if (input != ir::kNoValue || file.is_placed(value)) s.into |= static_cast<uint8_t>(1u << i);
  }
  for (size_t k = 0; k < std::min<size_t>(operands.size(), std::numeric_limits<int8_t>::max()) &&
                     s.kind == Kind::kernel && s.results == 1 && s.takes < 0 && !s.into && !records_;
       ++k)
    if (file.dies(operands[k], s.node) && ir::may_lie_over(*node.op, operands, k, 0) &&
        graph_.type_index(operands[k]) == graph_.type_index(node.first_result)) {
      s.takes = static_cast<int8_t>(k);
      file.take_over(node.first_result, operands[k]);
    }
  for (int i = 0; i < s.results; ++i) {
    if (s.takes < 0 && !s.computes_into(i)) file.take(node.first_result + i);
    registers_.push_back(file.at(node.first_result + i));
  }
  const auto let_die = [&](ir::ValueId v) {
    if (!file.dies(v, s.node)) return;
    registers_.push_back(file.free(v));
    ++s.dying;
  };
  for (ir::ValueId v : operands) let_die(v);
  for (int i = 0; i < s.results; ++i) let_die(node.first_result + i);
}

}  // namespace retrograd
