// See tracer/plan/forecast.h; start reading at timeline().
#include "tracer/plan/forecast.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "engine/bookkeeping.h"
#include "engine/region.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {

namespace {

class Forecast {
 public:
  /// `unpacks`: their values are not counted, but the step that frees them is recorded.
  Forecast(const PlanRun& run, std::span<const UnpackStep> unpacks)
      : run_(run),
        program_(run.program()),
        unpacks_(unpacks),
        cells_(program_),
        memory_(cells_.at.size(), kNotOurs),
        live_(program_.executor.live_bytes()),
        most_(live_),
        device_(program_.device()) {
    const RefPtr<Storage> nowhere = storage_without_memory();
    for (const RefPtr<TensorImpl>& cell : cells_.own) cell->set_storage(nowhere);
    cells_.patched = run.frame().patched;
    find_ours();
  }

  MemoryTimeline timeline() {
    found_.most = found_.at_begin = live_;
    found_.lies_over.resize(program_.registers.size());
    found_.one_by_one.resize(program_.fused.size());
    found_.last.resize(unpacks_.size(), program_.steps.size() - 1);
    for (const Step& s : program_.steps) {
      most_ = live_;
      step(s);
      const int32_t* dying = program_.registers_of(s) + s.operands + s.results;
      for (int i = 0; i < s.dying; ++i) hold(dying[i], kNotOurs);
      found_.live.push_back(most_);
      found_.most = std::max(found_.most, most_);
    }
    found_.at_end = live_;
    return std::move(found_);
  }

 private:
  static constexpr int32_t kNotOurs = -1;
  struct Memory {
    int64_t bytes;
    int holders;
    int32_t unpack = -1;  // into unpacks_: the unpack whose value it holds
  };
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  size_t number() const { return found_.live.size(); }  // of the step

  using Holders = std::unordered_map<TensorImpl*, int>;
  // How often registers, and slots that this run empties, hold each cell.
  Holders count_holders() {
    Holders holders;
    const Frame& frame = run_.frame();
    for (size_t r = 0; r < frame.at.size(); ++r) {
      if (!frame.foreign[r]) continue;
      ++holders[frame.foreign[r].get()];
      cells_.at[r] = frame.foreign[r].get();
    }
    each_emptied([&](const Slot& slot) { each_held(slot, [&](TensorImpl& cell) { ++holders[&cell]; }); });
    for (const Region* region : run_.slots().regions)
      for (size_t i = 0; !run_.slots().retain && i < region->kept_count(); ++i)
        each_held(region->kept_slot(i), [&](TensorImpl& cell) { ++holders[&cell]; });
    return holders;
  }

  // Memory is ours if all references to it, and to its cells, are.
  void find_ours() {
    const Holders holders = count_holders();
    std::unordered_map<const Storage*, std::pair<uint32_t, Memory>>
        memories;  // number of references, all ours
    for (const auto& [cell, count] : holders) {
      if (!cell->storage() || cell->ref_count() != static_cast<uint32_t>(count)) continue;
      auto& [references, memory] = memories[cell->storage().get()];
      ++references;
      memory = {cell->device() == device_ ? cell->storage()->nbytes() : 0, memory.holders + count};
    }
    each_emptied([&](const Slot& slot) {
      if (!slot.packed() || !slot.packed()->structure) return;
      const auto found = memories.find(slot.packed()->aliased.get());
      if (found != memories.end()) ++found->second.first;  // it goes with the tensor
    });
    for (const auto& [cell, count] : holders) {
      const auto found = memories.find(cell->storage().get());
      if (found == memories.end() || cell->storage()->is_external() ||
          found->second.first != cell->storage()->ref_count())
        continue;
      const auto [it, is_new] =
          memory_of_storage_.try_emplace(found->first, static_cast<int32_t>(memories_.size()));
      if (is_new) memories_.push_back(found->second.second);
    }
    for (size_t r = 0; r < run_.frame().at.size(); ++r)
      if (run_.frame().foreign[r]) memory_[r] = memory_of(*run_.frame().foreign[r]);
  }

  template <class F>
  void each_emptied(const F& f) const {
    for (const Record* record : run_.slots().records)
      for (int i = 0; !run_.slots().retain && i < record->slots; ++i) f(record->slot(i));
  }
  int32_t memory_of(const TensorImpl& cell) const {
    const auto it = memory_of_storage_.find(cell.storage().get());
    return it == memory_of_storage_.end() ? kNotOurs : it->second;
  }

  void let_go(int32_t memory) {
    if (memory == kNotOurs || --memories_[at(memory)].holders > 0) return;
    live_ -= memories_[at(memory)].bytes;
    if (const int32_t unpack = memories_[at(memory)].unpack; unpack >= 0) found_.last[at(unpack)] = number();
  }
  // The register holds this memory now, which has been counted for it.
  void hold(int32_t r, int32_t memory) { let_go(std::exchange(memory_[at(r)], memory)); }
  void need(int64_t bytes) { most_ = std::max(most_, live_ + bytes); }
  int32_t allocate(int64_t bytes) {
    live_ += bytes;
    need(0);
    memories_.push_back({bytes, 1});
    return static_cast<int32_t>(memories_.size()) - 1;
  }
  // The result of user code: assumed to be held only by the run, and not counted.
  int32_t unknown() {
    const auto found = std::ranges::lower_bound(unpacks_, number(), {}, &UnpackStep::step);
    const bool is_unpack = found != unpacks_.end() && found->step == number();
    memories_.push_back({0, 1, is_unpack ? static_cast<int32_t>(found - unpacks_.begin()) : -1});
    return static_cast<int32_t>(memories_.size()) - 1;
  }
  int64_t bytes_of(int32_t r) const {
    const TensorType& type = program_.layout.type(at(r));
    return type.device == device_ ? retrograd::bytes_of(type) : 0;
  }
  // The register's own cell, in new memory or in that of another register.
  void hold_own(int32_t r, int32_t memory) {
    hold(r, memory);
    cells_.at[at(r)] = cells_.own[at(r)].get();
  }
  void hold_unknown(const Step& s) {
    for (int i = 0; i < s.results; ++i) hold_result(program_.registers_of(s)[s.operands + i], unknown());
  }
  void hold_result(int32_t r, int32_t memory) {
    hold_own(r, memory);
    contiguous_strides(cells_.at[at(r)]->shape(), cells_.at[at(r)]->mutable_strides());
  }

  bool is_emptied(const Slot& s) const { return !run_.slots().retain && s.value(); }

  void step(const Step& s) {
    switch (s.kind) {
      case StepKind::span:
      case StepKind::kernel: return kernel(s);
      case StepKind::fused: return fused(s);
      case StepKind::view: return view(s);
      case StepKind::unpack: return unpack(s);
      case StepKind::accumulate_grad: return accumulate(s);
      case StepKind::retain_grad: return retain(s);
      case StepKind::release: return release(s);
      case StepKind::host:
        if (program_.node(s).op == &ops::info<ops::Contiguous>) return contiguous(s);
        if (program_.node(s).op->is(Trait::fresh)) return fresh(s);
        return hold_unknown(s);
      case StepKind::code:
        if (ops::puts_outside(*program_.node(s).op)) return put_outside(s);
        return hold_unknown(s);
      default: return hold_unknown(s);
    }
  }

  // The memory is now also held outside the run, to the end.
  void keep(int32_t r) {
    if (memory_[at(r)] != kNotOurs) ++memories_[at(memory_[at(r)])].holders;
  }

  void lies_over(const Step& s, int i) { found_.lies_over[s.first_register + static_cast<size_t>(i)] = true; }
  bool may_lie_on(int32_t memory, const TensorImpl& cell) const {
    return memory != kNotOurs && memories_[at(memory)].holders == 1 && cell.is_contiguous();
  }

  void kernel(const Step& s) {
    const int32_t* r = program_.registers_of(s);
    int32_t folded = kNotOurs;  // a slot that is read in place
    const TensorImpl* folded_cell = nullptr;
    for (int i = 0; i < s.operands; ++i) {
      if (r[i] >= -1) continue;
      const FoldedSlot& from = program_.folded_slot(r[i]);
      const Slot& slot = run_.slots().slot(from.record, from.slot);
      folded_cell = slot.value();
      if (is_emptied(slot)) folded = empty(slot);
    }
    for (int i = 0; i < s.results; ++i) {
      if (s.computes_into(i)) continue;
      const int32_t result = r[s.operands + i];
      const int32_t donor = s.takes < 0 ? -1 : r[s.takes];
      const int32_t memory = s.takes < 0 ? kNotOurs : donor < -1 ? folded : memory_[at(donor)];
      if (s.takes >= 0 && may_lie_on(memory, donor < -1 ? *folded_cell : *cells_.at[at(donor)])) {
        ++memories_[at(memory)].holders;
        hold_result(result, memory);
        lies_over(s, s.operands + i);
      } else {
        hold_result(result, allocate(bytes_of(result)));
      }
    }
    if (s.kind == StepKind::kernel) scratch(s.scratch);
    let_go(folded);
  }

  void fused(const Step& s) {
    const int32_t* r = program_.registers_of(s);
    const FusedStep& f = program_.fused_of(s);
    std::vector<std::pair<int32_t, int32_t>> made;  // register, memory
    std::vector<TensorImpl*> inputs, outputs;
    for (int i = 0; i < s.operands; ++i) inputs.push_back(cells_.at[at(r[i])]);
    for (size_t o = 0; o < s.results; ++o) {
      const int32_t result = r[s.operands + o], donor = f.takes[o] < 0 ? -1 : r[f.takes[o]];
      outputs.push_back(f.into[o] ? cells_.at[at(result)] : cells_.own[at(result)].get());
      if (f.into[o]) continue;
      if (donor >= 0 && may_lie_on(memory_[at(donor)], *cells_.at[at(donor)])) {
        ++memories_[at(memory_[at(donor)])].holders;
        made.emplace_back(result, memory_[at(donor)]);
        outputs.back() = inputs[at(f.takes[o])];
        lies_over(s, s.operands + static_cast<int>(o));
      } else {
        made.emplace_back(result, allocate(bytes_of(result)));
      }
    }
    temporary(s, inputs, outputs);
    for (const auto& [result, memory] : made) hold_result(result, memory);
  }

  void temporary(const Step& s, const std::vector<TensorImpl*>& inputs,
                 const std::vector<TensorImpl*>& outputs) {
    const FusedStep& f = program_.fused_of(s);
    const FusedKernel::Temporary more = f.kernel->temporary(inputs.data(), outputs.data());
    found_.one_by_one[at(s.bound)] = more.is_one_by_one;
    need(more.bytes);
    if (!more.is_one_by_one) scratch(f.scratch);
  }

  // Scratch memory outside the arena.
  void scratch(int32_t piece) {
    if (piece >= 0 && program_.scratch[at(piece)].offset < 0) need(program_.scratch[at(piece)].bytes);
  }

  void view(const Step& s) {
    const int32_t* r = program_.registers_of(s);
    const int32_t result = r[s.operands], memory = memory_[at(r[0])];
    std::vector<TensorImpl*> operands;
    for (int i = 0; i < s.operands; ++i) operands.push_back(r[i] < 0 ? nullptr : cells_.at[at(r[i])]);
    const ir::Node& node = program_.node(s);
    void* attrs = AttrTable::of_run(s.attrs, cells_.patched);
    node.op->layout({node.op, operands, attrs, node.where, s.results}, *cells_.own[at(result)]);
    keep(r[0]);
    hold_own(result, memory);
  }

  void contiguous(const Step& s) {
    const int32_t* r = program_.registers_of(s);
    const int32_t result = r[s.operands];
    if (!cells_.at[at(r[0])]->is_contiguous()) return hold_result(result, allocate(bytes_of(result)));
    keep(r[0]);
    hold(result, memory_[at(r[0])]);
    cells_.at[at(result)] = cells_.at[at(r[0])];
    lies_over(s, s.operands);
  }

  void fresh(const Step& s) {
    for (int i = 0; i < s.results; ++i) {
      const int32_t r = program_.registers_of(s)[s.operands + i];
      hold_result(r, allocate(bytes_of(r)));
    }
  }

  void unpack(const Step& s) {
    const int32_t r = program_.registers_of(s)[0];
    const Slot& from = run_.slots().slot(s.record, s.slot);
    if (const Tensor* part = run_.slots().part(s.record, s.slot)) {
      if (!run_.slots().retain) taken_.insert(part);
      cells_.at[at(r)] = part->get();
      return hold_own(r, run_.slots().retain ? kNotOurs : memory_of(part->impl()));
    }
    if (from.packed()) return hold_result(r, unknown());
    if (s.record >= SavedSlots::kRegions) {  // the region holds it, too
      const int32_t memory = memory_of(*from.value());
      if (memory != kNotOurs) ++memories_[at(memory)].holders;
      hold_own(r, memory);
    } else {
      hold_own(r, is_emptied(from) ? empty(from) : kNotOurs);
    }
    if (from.value()) cells_.at[at(r)] = from.value();
  }

  // The value is held outside the run from here to the end.
  void put_outside(const Step& s) {
    const int32_t* r = program_.registers_of(s);
    const int32_t memory = memory_[at(r[0])];
    for (int holder = 0; holder < 2; ++holder) keep(r[0]);
    hold_own(r[s.operands], memory);
  }

  void release(const Step& s) {
    if (run_.slots().retain) return;
    const Record& record = *run_.slots().records[s.record];
    for (int i = 0; i < record.slots; ++i) {
      const Slot& from = record.slot(i);
      if (is_emptied(from) && !emptied_.contains(&from)) let_go(empty(from));
      if (!from.packed() || !emptied_.insert(&from).second) continue;
      drop_holder(*from.packed());
      for (const Tensor* part : payload_tensors(*from.packed()))
        if (part->defined() && taken_.insert(part).second) let_go(memory_of(part->impl()));
    }
  }
  // With the last holders of a region's values go the tensors that it keeps for them.
  void drop_holder(const Packed& packed) {
    const Region* const region = packed.hooks->region();
    if (!region) return;
    region->each_dropped_with(packed.payload, gone_[region], [&](size_t i) {
      const Slot& kept = region->kept_slot(i);
      if (!emptied_.insert(&kept).second) return;
      if (kept.value()) let_go(memory_of(*kept.value()));
      if (kept.packed()) drop_holder(*kept.packed());
    });
  }
  int32_t empty(const Slot& s) {
    emptied_.insert(&s);
    return memory_of(*s.value());
  }

  // The first gradient of a leaf is moved or copied, later ones are added to it.
  void accumulate(const Step& s) {
    const int32_t r = program_.registers_of(s)[0];
    const TensorImpl& leaf = *run_.bindings()[at(s.bound)].leaf;
    if ((leaf.meta && leaf.meta->grad.defined()) || !given_.insert(&leaf).second) return;
    const int32_t memory = memory_[at(r)];
    if (s.dying && memory != kNotOurs && memories_[at(memory)].holders == 1 &&
        has_layout_of_grad(*cells_.at[at(r)], leaf)) {
      lies_over(s, 0);
      return keep(r);
    }
    allocate(bytes_of(r));
  }

  // The first gradient of a box is copied; a sum is stored before the previous gradient is released.
  void retain(const Step& s) {
    const GradBox* box = run_.bindings()[at(s.bound)].box.get();
    const int64_t bytes = bytes_of(program_.registers_of(s)[0]);
    if (box->grad.defined() || !retained_.insert(box).second)
      need(bytes);
    else
      allocate(bytes);
  }

  const PlanRun& run_;
  const Program& program_;
  const std::span<const UnpackStep> unpacks_;
  Frame cells_;  // layouts; no memory
  std::unordered_map<const Storage*, int32_t> memory_of_storage_;
  std::vector<Memory> memories_;
  std::vector<int32_t> memory_;                                  // of each register, into memories_
  std::unordered_set<const Slot*> emptied_;                      // so far
  std::unordered_set<const Tensor*> taken_;                      // from payloads so far
  std::unordered_map<const Region*, std::vector<size_t>> gone_;  // holders, by segment
  std::unordered_set<const TensorImpl*> given_;                  // leaves that have their first gradient
  std::unordered_set<const GradBox*> retained_;                  // boxes that have their first gradient
  int64_t live_, most_;                                          // now, during the step
  const Device device_;                                          // whose memory is counted
  MemoryTimeline found_;
};

}  // namespace

MemoryTimeline forecast(const PlanRun& run, std::span<const UnpackStep> unpacks) {
  return Forecast(run, unpacks).timeline();
}

}  // namespace retrograd
