// See tracer/plan/placement.h.
#include "tracer/plan/placement.h"

#include <algorithm>
#include <numeric>

#include "ir/passes/memory_plan.h"

namespace retrograd::inline v0 {
namespace {

using ir::ValueId;

// A base and its views share memory; `last` and `open` are kept at the base. A block is the memory of one base, or of
// several laid over one another. If one of them is open, the block is outside the arena: so a chain of results that
// ends in a gradient of a leaf needs no second block.
class Placer {
 public:
  explicit Placer(const PlacedPlan& plan)
      : plan_(plan),
        base_(static_cast<size_t>(plan.graph.value_count())),
        last_(plan.last.begin(), plan.last.end()),
        open_(base_.size()),
        block_(base_.size(), -1),
        scratch_(plan.steps.size(), -1) {
    std::iota(base_.begin(), base_.end(), 0);
  }

  Placement run() {
    for (const ir::Input& input : plan_.graph.inputs())
      if (input.kind == ir::Input::Kind::tensor) open(input.value);
    for (const PlacedStep& step : plan_.steps) look(step);
    for (ValueId v : plan_.graph.outputs()) open(v);
    for (size_t v = 0; v < base_.size(); ++v) last_[at(base_[v])] = std::max(last_[at(base_[v])], last_[v]);
    for (size_t s = 0; s < plan_.steps.size(); ++s) lay(s);
    return collect();
  }

 private:
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  ValueId base(ValueId v) const { return base_[at(v)]; }
  void open(ValueId v) {
    if (v != ir::kNoValue) open_[at(base(v))] = true;
  }
  int64_t bytes(ValueId v) const { return plan_.bytes[at(plan_.graph.type_index(v))]; }

  void look(const PlacedStep& step) {
    if (step.kind == PlacedStep::Kind::view) {
      base_[at(step.results[0])] = base(step.operands[0]);
    } else if (step.kind != PlacedStep::Kind::kernel) {
      for (ValueId v : step.operands)
        if (step.kind == PlacedStep::Kind::other) open(v);
      for (ValueId v : step.results) open(v);
    } else {
      for (ValueId v : step.results)
        if (bytes(v) == 0 || plan_.is_outside(v)) open(v);
    }
  }

  void lay(size_t number) {
    const PlacedStep& step = plan_.steps[number];
    const auto node = static_cast<int32_t>(step.node);
    if (step.kind != PlacedStep::Kind::kernel) return;
    for (size_t r = 0; r < step.results.size(); ++r) {
      const ValueId result = step.results[r];
      if (plan_.is_outside(result)) continue;
      if (!lay_over_operand(number, r)) add(block_[at(result)], bytes(result), node, node);
      ir::Block& block = lifetimes_.blocks[at(block_[at(result)])];
      block.last = std::max(last_[at(result)], node);
      block.escapes = block.escapes || open_[at(result)];
    }
    if (step.scratch_bytes > 0) add(scratch_[number], step.scratch_bytes, node, node);
  }

  bool lay_over_operand(size_t number, size_t r) {
    const PlacedStep& step = plan_.steps[number];
    const ValueId result = step.results[r];
    for (size_t o = 0; o < step.operands.size(); ++o) {
      const ValueId v = step.operands[o];
      if (!may_go(v, step) || (plan_.keeps_arena && open_[at(result)] != open_[at(v)]) ||
          plan_.graph.type_index(v) != plan_.graph.type_index(result) ||
          !plan_.may_overwrite(number, static_cast<int>(o), static_cast<int>(r)))
        continue;
      block_[at(result)] = std::exchange(block_[at(v)], -1);
      laid_.push_back({v, block_[at(result)]});
      return true;
    }
    return false;
  }

  // Whether this step is the last that needs the operand's memory, and reads it directly, not through a view.
  bool may_go(ValueId v, const PlacedStep& step) const {
    return v != ir::kNoValue && base(v) == v && block_[at(v)] >= 0 &&
           last_[at(v)] == static_cast<int32_t>(step.node) &&
           std::ranges::all_of(step.operands, [&](ValueId other) {
             return other == v || other == ir::kNoValue || base(other) != v;
           });
  }

  void add(int32_t& block, int64_t size, int32_t first, int32_t last) {
    block = static_cast<int32_t>(lifetimes_.blocks.size());
    lifetimes_.blocks.push_back({size, first, last, false});
  }

  // The bytes up to which an arena pays: it is live for the whole run, next to the values with separate memory.
  int64_t most_bytes() const {
    ir::Lifetimes outside;
    outside.nodes = lifetimes_.nodes;
    std::ranges::copy_if(lifetimes_.blocks, std::back_inserter(outside.blocks), &ir::Block::escapes);
    return lifetimes_.peak_bytes() + plan_.most_waste - outside.peak_bytes();
  }

  Placement collect() {
    for (const auto& [value, block] : laid_) block_[at(value)] = block;
    lifetimes_.nodes = static_cast<int32_t>(plan_.graph.nodes().size());
    const int64_t most = most_bytes();
    const ir::MemoryPlan memory = ir::plan_memory(lifetimes_, most);
    Placement placement;
    if (memory.arena_bytes > most) {
      placement.offsets.resize(block_.size(), -1);
      placement.scratch.resize(scratch_.size(), -1);
      return placement;
    }
    placement.arena_bytes = memory.arena_bytes;
    const auto offset = [&](int32_t block) { return block < 0 ? -1 : memory.offsets[at(block)]; };
    for (int32_t b : block_) placement.offsets.push_back(offset(b));
    for (int32_t b : scratch_) placement.scratch.push_back(offset(b));
    return placement;
  }

  const PlacedPlan& plan_;
  std::vector<ValueId> base_;
  std::vector<int32_t> last_;
  std::vector<bool> open_;
  std::vector<int32_t> block_, scratch_;           // of values and steps, into lifetimes_.blocks; -1: none
  std::vector<std::pair<ValueId, int32_t>> laid_;  // values over which others were laid, and their block
  ir::Lifetimes lifetimes_;
};

}  // namespace

Placement place_values(const PlacedPlan& plan) { return Placer(plan).run(); }

}  // namespace retrograd
