// Makes the program of a fused group: see cpu/fused/fused_program.h.
//
// make_program() lowers the group, composes instructions, turns numbers that are still operands into values, decides
// how reductions are cut, and assigns each value a slot (Placement). Placement traverses the instructions once: it
// frees the register of an operand after its last use, before placing the result if the instruction may work in
// place, otherwise after it. A group that needs more slots than a pass has is refused. Start reading at make_program.
#include "cpu/fused/fused_program.h"

#include <algorithm>

#include "cpu/fused/fused_compose.h"

namespace retrograd::inline v0::cpu {
namespace {

using Kind = FusedDraft::Value::Kind;

// Assigns slots to values, instruction by instruction; a register is free again after the last use of its value.
class Placement {
 public:
  Placement(const FusedDraft& draft, FusedProgram& program)
      : draft_(draft),
        program_(program),
        slot_(draft.values.size(), -1),
        last_use_(draft.values.size(), -1) {}

  void run() {
    take_sources();
    for (const FusedDraft::Value& v : draft_.values)
      if (v.wide) program_.item = 8;
    for (size_t i = 0; i < draft_.code.size(); ++i)
      for (int k = 0; k < draft_.code[i].inputs; ++k)
        if (const int v = draft_.code[i].in[static_cast<size_t>(k)]; v >= 0 && !draft_.code[i].absorbed)
          last_use_[static_cast<size_t>(v)] = static_cast<int>(i);
    for (const FusedDraft::Reduction& r : draft_.reductions)  // read after the last instruction
      last_use_[static_cast<size_t>(r.value)] = static_cast<int>(draft_.code.size());
    for (size_t i = 0; i < draft_.code.size(); ++i)
      if (!draft_.code[i].absorbed) place(draft_.code[i], static_cast<int>(i));
    for (const FusedDraft::Reduction& r : draft_.reductions) {
      const int slot = slot_[static_cast<size_t>(r.value)];
      program_.reductions.push_back({r.row, slot, r.output, value(r.value).wide, r.dtype});
      note_read(slot, true);
    }
    program_.registers = registers_;
  }

 private:
  const FusedDraft::Value& value(int v) const { return draft_.values[static_cast<size_t>(v)]; }

  // Assigns slots that are known beforehand. Numbers that a composed instruction takes as attributes need none.
  void take_sources() {
    program_.sources = draft_.sources;
    program_.numbers = draft_.numbers;
    for (size_t v = 0; v < draft_.values.size(); ++v) {
      const FusedDraft::Value& x = draft_.values[v];
      slot_[v] = x.kind == Kind::source   ? x.index
                 : x.kind == Kind::number ? program_.first_number() + x.index
                 : x.output >= 0          ? program_.first_output() + x.output
                 : x.kept >= 0            ? program_.first_kept() + x.kept
                                          : -1;
    }
  }

  void free_operands(const FusedDraft::Instruction& i, int at) {
    for (int k = 0; k < i.inputs; ++k) {
      const int v = i.in[static_cast<size_t>(k)], slot = slot_[static_cast<size_t>(v)];
      if (last_use_[static_cast<size_t>(v)] == at && slot >= program_.first_register() &&
          std::ranges::find(free_, slot) == free_.end())
        free_.push_back(slot);
    }
  }

  void place(const FusedDraft::Instruction& i, int at) {
    if (i.in_place) free_operands(i, at);
    int& out = slot_[static_cast<size_t>(i.out)];
    if (out < 0) {
      if (free_.empty()) free_.push_back(program_.first_register() + registers_++);
      out = free_.back();
      free_.pop_back();
    }
    if (!i.in_place) free_operands(i, at);
    FusedInstruction made{i.span,
                          {},
                          static_cast<uint16_t>(out),
                          static_cast<uint8_t>(i.inputs),
                          i.composed,
                          static_cast<uint16_t>(program_.parts.size()),
                          static_cast<uint16_t>(i.parts.size())};
    for (int k = 0; k < i.inputs; ++k) {
      const int slot = slot_[static_cast<size_t>(i.in[static_cast<size_t>(k)])];
      made.in[k] = static_cast<uint16_t>(slot);
      note_read(slot, i.in_place);
    }
    for (int part : i.parts) program_.parts.push_back(static_cast<uint16_t>(part));
    program_.code.push_back(made);
    if (const int output = value(i.out).output; output >= 0)
      program_.written[static_cast<size_t>(output)] = static_cast<int>(program_.code.size()) - 1;
  }

  // To be called for the instruction to be added next. One that cannot work in place reads its operand until its end.
  void note_read(int slot, bool in_place) {
    if (slot >= program_.first_number()) return;
    const auto input = static_cast<size_t>(draft_.sources[static_cast<size_t>(slot)].input);
    program_.last_read[input] = static_cast<int>(program_.code.size()) + !in_place;
  }

  const FusedDraft& draft_;
  FusedProgram& program_;
  std::vector<int> slot_, last_use_;  // of values
  std::vector<int> free_;
  int registers_ = 0;
};

// A number used as an operand becomes a value, unless an instruction takes it as an attribute.
void make_numbers(FusedDraft& draft, const FusedGroup& group) {
  for (FusedDraft::Instruction& i : draft.code)
    for (int k = 0; k < i.inputs && !i.composed && !i.absorbed; ++k) {
      int& in = i.in[static_cast<size_t>(k)];
      if (in != FusedDraft::kNumber) continue;
      const FusedNode& node = group.nodes[static_cast<size_t>(i.parts[0])];
      draft.numbers.push_back({i.parts[0], number_offset(*node.op, node.attrs, "scalar"), i.wide});
      in = static_cast<int>(draft.values.size());
      draft.values.push_back({Kind::number, i.wide, static_cast<int>(draft.numbers.size()) - 1});
    }
}

// The rows and columns of a contiguous operand as in the reduction kernels: see reduction_role. Sizes for which these
// kernels work in another way are left to them.
bool cut_for_reductions(const FusedDraft& draft, FusedProgram& program) {
  if (draft.reductions.empty()) return true;
  const IntList& dims = draft.reductions[0].dims;
  bool same = true;
  for (const FusedDraft::Reduction& r : draft.reductions)
    same &= r.dims.size() == dims.size() && std::equal(dims.begin(), dims.end(), r.dims.begin()) &&
            r.dtype == draft.reductions[0].dtype;
  int64_t reduced = 1;
  for (int64_t d : dims) reduced *= draft.shape[static_cast<int>(d)].raw();
  if (!same || program.numel == 0 || reduced == 1) return false;
  program.reduces = draft.reduces;
  const bool down = draft.reduces == FusedRole::reduce_columns;
  program.rows = down ? reduced : program.numel / reduced;
  program.columns = program.numel / program.rows;
  return !down || program.columns >= kLeastColumns;
}

}  // namespace

std::optional<FusedProgram> make_program(const FusedGroup& group, const KernelTable& table) {
  FusedDraft draft;
  FusedProgram program;
  if (!lower(group, table, draft)) return {};
  compose(draft);
  make_numbers(draft, group);
  program.shape = draft.shape;
  program.numel = draft.shape.numel().raw();
  if (!cut_for_reductions(draft, program)) return {};
  for (int32_t node : group.outputs)
    program.output_items.push_back(
        static_cast<int64_t>(element_size(group.nodes[static_cast<size_t>(node)].type.dtype)));
  program.fetches_outputs = !draft.streams;
  program.kept_wide.resize(static_cast<size_t>(draft.kept));
  for (const FusedDraft::Value& v : draft.values)
    if (v.kept >= 0) program.kept_wide[static_cast<size_t>(v.kept)] = v.wide;
  program.last_read.assign(group.inputs.size(), -1);
  program.written.assign(group.outputs.size(), -1);
  Placement(draft, program).run();
  for (const FusedReduction& r : program.reductions) program.output_items[static_cast<size_t>(r.output)] = 0;
  if (program.tiles() > kMaxFusedTiles || program.slots() > kMaxFusedSlots) return {};
  return program;
}

}  // namespace retrograd::cpu
