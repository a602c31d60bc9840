// RegisterFile: assigns a register to each value of a plan while the plan is made.
//
// Registers are handed out in order of the graph: a register is free for the next value of its type after the step in
// which its value dies. A step is a node, or a group of nodes that run as one, represented by its last node. A result
// may take over the register of an operand that dies in its step. A written input keeps its register until its new
// value takes it over. Values of the arena (tracer/plan/placement.h) come first: those of one type at one offset
// share a register, which is never free for others.
#pragma once

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "tracer/plan/placement.h"
#include "tracer/plan/plan.h"

namespace retrograd::inline v0 {

class RegisterFile {
 public:
  /// `types` receives the type of each register. `step_ends`: for each node, the last node of the step that it runs
  /// in; empty: itself.
  RegisterFile(const ir::Graph& graph, std::vector<int32_t>& types, std::span<const uint32_t> step_ends)
      : graph_(graph),
        step_ends_(step_ends),
        types_(types),
        register_(static_cast<size_t>(graph.value_count()), -1),
        last_(register_.size(), -1),
        is_placed_(register_.size()),
        free_(graph.types().size()) {
    const auto& nodes = graph.nodes();
    for (size_t n = 0; n < nodes.size(); ++n) {
      const int32_t end = step_end(static_cast<int32_t>(n));
      for (int i = 0; i < nodes[n].results; ++i) last(nodes[n].first_result + i) = end;
      for (ir::ValueId v : graph.operands(nodes[n]))
        if (v != ir::kNoValue) last(v) = end;
    }
    for (ir::ValueId v : graph.outputs())
      if (v != ir::kNoValue) last(v) = static_cast<int32_t>(nodes.size());
  }
  /// Keeps the register of a written input until its new value is computed into it, if the old value is no longer
  /// read then. may_overwrite: whether the step that ends at a node may read the input while it computes the value in
  /// its memory.
  void reserve(std::span<const WrittenInput> writes,
               const std::function<bool(int32_t step_end, const WrittenInput&)>& may_overwrite);
  /// The registers of values with views are not shared with other values.
  void keep_viewed();
  /// For each value, the last node of the last step that needs it.
  std::span<const int32_t> last() const { return last_; }
  /// Assigns registers to the values of an arena, before all others. Returns the offset of each of these registers.
  std::vector<int64_t> place(const Placement& placement);
  /// Whether a step or an output needs `v`.
  bool is_used(ir::ValueId v) const { return last_[static_cast<size_t>(v)] >= 0; }
  /// Whether `v` is in the arena.
  bool is_placed(ir::ValueId v) const { return is_placed_[static_cast<size_t>(v)]; }
  /// The written input into which `v` is computed; kNoValue: none.
  ir::ValueId target_of(ir::ValueId v) const {
    const auto it = targets_.find(v);
    return it == targets_.end() ? ir::kNoValue : it->second;
  }
  int32_t at(ir::ValueId v) const { return v == ir::kNoValue ? -1 : register_[static_cast<size_t>(v)]; }
  bool dies(ir::ValueId v, uint32_t node) {
    return v != ir::kNoValue && last(v) == static_cast<int32_t>(node);
  }
  void take(ir::ValueId v) {
    auto& list = free_[static_cast<size_t>(graph_.type_index(v))];
    if (list.empty()) {
      list.push_back(static_cast<int32_t>(types_.size()));
      types_.push_back(graph_.type_index(v));
    }
    register_[static_cast<size_t>(v)] = list.back();
    list.pop_back();
  }
  /// Keeps values that a stopped run must have, used or not. To be called before any take() and free().
  void keep(std::span<const KeptValue> values);
  /// The values kept until the step that ends at node `number` begins, although the step does not use them.
  /// `first_result`: of the nodes of the step.
  std::vector<ir::ValueId> ending_before(uint32_t number, std::span<const ir::ValueId> operands,
                                         ir::ValueId first_result) {
    std::vector<ir::ValueId> ending;
    const auto it = ends_at_.find(static_cast<int32_t>(number));
    if (it == ends_at_.end()) return ending;
    for (ir::ValueId v : it->second)
      if (dies(v, number) && v < first_result && std::ranges::find(operands, v) == operands.end())
        ending.push_back(v);
    return ending;
  }
  std::vector<int32_t> registers() && { return std::move(register_); }
  void take_over(ir::ValueId v, ir::ValueId dying) {
    last(dying) = -1;
    register_[static_cast<size_t>(v)] = at(dying);
  }
  int32_t free(ir::ValueId v) {
    last(v) = -1;  // once only
    if (is_kept_.empty() || !is_kept_[static_cast<size_t>(v)])
      free_[static_cast<size_t>(graph_.type_index(v))].push_back(at(v));
    return at(v);
  }

 private:
  int32_t step_end(int32_t node) const {
    return step_ends_.empty() ? node : static_cast<int32_t>(step_ends_[static_cast<size_t>(node)]);
  }
  int32_t& last(ir::ValueId v) { return last_[static_cast<size_t>(v)]; }
  const ir::Graph& graph_;
  std::span<const uint32_t> step_ends_;
  std::vector<int32_t>& types_;
  std::vector<int32_t> register_, last_;  // of values; last: the node of the last use
  std::vector<bool> is_placed_;           // in the arena
  std::vector<bool> is_kept_;             // its register is not shared; empty: none
  std::vector<std::vector<int32_t>> free_;
  std::unordered_map<int32_t, std::vector<ir::ValueId>> ends_at_;  // filled by keep() only
  std::unordered_map<ir::ValueId, ir::ValueId> targets_;           // new value of a written input: the input
};

}  // namespace retrograd
