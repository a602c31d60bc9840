// Spans: steps that call a kernel's inner loop directly. See tracer/plan/program.h and tracer/plan/planner.h.
#include <algorithm>

#include "engine/runner.h"
#include "tracer/plan/planner.h"

namespace retrograd::inline v0 {
namespace {

// Above it, a kernel's own division into chunks is worth its overhead.
constexpr int64_t kSpanElements = 2048;

constexpr size_t kAhead = 8;  // folded slots between a prefetch and its use

// The operand of `s` that is the value unpacked by the step before it, if only `s` uses it; null: there is none.
int32_t* folded_operand(Program& program, const Step& unpack, const Step& s) {
  int32_t* const operands = program.registers.data() + s.first_register;
  int32_t* const dying = operands + s.operands + s.results;
  const int32_t unpacked = program.registers[unpack.first_register];
  if (std::count(operands, operands + s.operands, unpacked) != 1) return nullptr;
  if (std::find(dying, dying + s.dying, unpacked) == dying + s.dying) return nullptr;
  return std::find(operands, operands + s.operands, unpacked);
}

}  // namespace

void choose_spans(Program& program) {
  const ir::Graph& graph = program.graph;
  for (Step& s : program.steps) {
    const ir::Node& node = program.node(s);
    if (s.kind != StepKind::kernel || !node.op->is(Trait::elementwise) || s.operands == 0 ||
        s.operands > kMaxSpanOperands)
      continue;
    const int32_t type = graph.type_index(node.first_result);
    const bool same = std::ranges::all_of(graph.operands(node), [&](ir::ValueId v) {
      return v != ir::kNoValue && graph.type_index(v) == type;
    });
    const TensorType& t = program.layout.types[static_cast<size_t>(type)];
    const int64_t elements = t.shape.numel().raw();
    const SpanKernel span =
        same && elements <= kSpanElements ? program.executor.find_span(node.op, t.dtype) : nullptr;
    if (!span) continue;
    s.kind = StepKind::span;
    s.span = span;
    s.elements = static_cast<uint32_t>(elements);
    s.item = static_cast<uint8_t>(element_size(t.dtype));
  }
}

// The memory of such a value has not been visible elsewhere, so a run need not check.
void find_own_takes(Program& program) {
  const std::vector<int32_t> uses = ir::count_uses(program.graph);
  std::vector<bool> is_own(uses.size());
  for (Step& s : program.steps) {
    if (s.kind != StepKind::span && s.kind != StepKind::kernel) continue;
    const ir::Node& node = program.node(s);
    if (s.kind == StepKind::span && s.takes >= 0) {
      const auto taken = static_cast<size_t>(program.graph.operands(node)[static_cast<size_t>(s.takes)]);
      s.takes_own = is_own[taken] && uses[taken] == 1;
    }
    for (int i = 0; i < s.results; ++i)
      is_own[static_cast<size_t>(node.first_result + i)] = !s.computes_into(i);
  }
}

void fold_unpacks(Program& program, std::span<const std::optional<SlotPlace>> slots) {
  std::vector<Step>& steps = program.steps;
  std::vector<FoldedSlot>& folded = program.folded;
  size_t kept = 0;
  for (Step& s : steps) {
    const Step* before = kept ? &steps[kept - 1] : nullptr;
    if (before && s.kind == StepKind::span && before->kind == StepKind::unpack && before->dying == 0 &&
        slots[static_cast<size_t>(program.node(*before).handle)]->offset > 0) {
      if (int32_t* const operand = folded_operand(program, *before, s)) {
        int32_t* const dying = program.registers.data() + s.first_register + s.operands + s.results;
        int32_t* const dies = std::find(dying, dying + s.dying, *operand);
        std::copy(dies + 1, dying + s.dying, dies);
        --s.dying;
        *operand = -2 - static_cast<int32_t>(folded.size());
        const auto input = static_cast<size_t>(program.node(*before).handle);
        folded.push_back({static_cast<uint32_t>(before->record), before->slot, slots[input]->offset, 0});
        --kept;
      }
    }
    steps[kept++] = s;
  }
  steps.resize(kept);
  for (size_t i = 0; i < folded.size(); ++i)
    folded[i].ahead = folded[std::min(i + kAhead, folded.size() - 1)].record;
}

}  // namespace retrograd
