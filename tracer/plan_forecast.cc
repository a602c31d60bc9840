// Forecast: the most bytes that will be live during a run, found before it runs.
//
// It goes through the steps as the run will, but for memory's sake only: who holds which memory, and when the last holder lets go. Memory is
// ours if nobody but registers and slots that this run empties holds it; it is freed with its last holder. All else stays as it is: parameters,
// saved values that the user still has, what is given away. Layouts of views are computed, since memory is taken over only by what is dense.
// What code of the user's does is left out (tracer/peak_watch.h): what it is shown it is taken not to hold, what it gives costs nothing. So is,
// of a plan for a device, what lies on the CPU. Cost: a hash map of the slots, and a step of the same order as a replayed one.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/bookkeeping.h"
#include "ops/shape_ops.h"
#include "tracer/host_node.h"
#include "tracer/plan_run.h"

namespace retrograd {

class Plan::Forecast {
 public:
  /// `unpacks`: whose values are not counted, but when they go.
  Forecast(const Run& run, std::span<const UnpackStep> unpacks)
      : run_(run),
        plan_(run.plan),
        unpacks_(unpacks),
        cells_(plan_.new_frame()),
        memory_(cells_->at.size(), kNotOurs),
        live_(plan_.executor_.live_bytes()),
        most_(live_),
        device_(plan_.device()) {
    const RefPtr<Storage> nowhere = storage_without_memory();
    for (const RefPtr<TensorImpl>& cell : cells_->own) cell->set_storage(nowhere);
    find_ours();
  }

  Run::Outlook outlook() {
    found_.most = live_;
    found_.lies_over.resize(plan_.registers_.size());
    found_.groups_one_by_one.resize(plan_.fused_.size());
    found_.last.resize(unpacks_.size(), plan_.steps_.size() - 1);
    for (const Step& s : plan_.steps_) {
      most_ = live_;
      step(s);
      const int32_t* dying = run_.registers(s) + s.operands + s.results;
      for (int i = 0; i < s.dying; ++i) hold(dying[i], kNotOurs);
      found_.live.push_back(most_);
      found_.most = std::max(found_.most, most_);
    }
    return std::move(found_);
  }

 private:
  static constexpr int32_t kNotOurs = -1;
  struct Memory {
    int64_t bytes;
    int holders;
    int32_t unpack = -1;  // into unpacks_: whose value it holds
  };
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  size_t number() const { return found_.live.size(); }  // of the step

  void find_ours() {
    std::unordered_map<TensorImpl*, int> holders;
    const Frame& frame = *run_.frame;
    for (size_t r = 0; r < frame.at.size(); ++r) {
      if (!frame.foreign[r]) continue;
      ++holders[frame.foreign[r].get()];
      cells_->at[r] = frame.foreign[r].get();
    }
    for (Record* record : run_.reached.records)
      for (int i = 0; !run_.request.retain_graph && i < record->slots; ++i)
        if (TensorImpl* cell = record->slot(i).value()) ++holders[cell];
    std::unordered_map<const Storage*, std::pair<uint32_t, Memory>> memories;  // how many cells, all ours
    for (const auto& [cell, count] : holders) {
      if (!cell->storage() || cell->ref_count() != static_cast<uint32_t>(count)) continue;
      auto& [cells, memory] = memories[cell->storage().get()];
      ++cells;
      memory = {cell->device() == device_ ? cell->storage()->nbytes() : 0, memory.holders + count};
    }
    for (const auto& [cell, count] : holders) {
      const auto found = memories.find(cell->storage().get());
      if (found == memories.end() || cell->storage()->is_external() ||
          found->second.first != cell->storage()->ref_count())
        continue;
      const auto [it, is_new] =
          memory_of_storage_.try_emplace(found->first, static_cast<int32_t>(memories_.size()));
      if (is_new) memories_.push_back(found->second.second);
    }
    for (size_t r = 0; r < frame.at.size(); ++r)
      if (frame.foreign[r]) memory_[r] = memory_of(*frame.foreign[r]);
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
  // What code of the user's gives: taken to be held by nobody else, and not counted.
  int32_t unknown() {
    const auto found = std::ranges::lower_bound(unpacks_, number(), {}, &UnpackStep::step);
    const bool is_unpack = found != unpacks_.end() && found->step == number();
    memories_.push_back({0, 1, is_unpack ? static_cast<int32_t>(found - unpacks_.begin()) : -1});
    return static_cast<int32_t>(memories_.size()) - 1;
  }
  int64_t bytes_of(int32_t r) const {
    const TensorType& type = plan_.cell_types_[at(plan_.register_types_[at(r)])];
    return type.device == device_ ? retrograd::bytes_of(type) : 0;
  }
  // The register's own cell, in new memory or in that of another register's.
  void hold_own(int32_t r, int32_t memory) {
    hold(r, memory);
    cells_->at[at(r)] = cells_->own[at(r)].get();
  }
  void hold_result(int32_t r, int32_t memory) {
    hold_own(r, memory);
    contiguous_strides(cells_->at[at(r)]->shape(), cells_->at[at(r)]->mutable_strides());
  }

  Slot& slot(uint64_t place, uint32_t index) const {
    return run_.reached.records[place]->slot(static_cast<int>(index));
  }
  bool is_emptied(const Slot& s) const { return !run_.request.retain_graph && s.value(); }

  void step(const Step& s) {
    const int32_t* r = run_.registers(s);
    switch (s.kind) {
      case Kind::span:
      case Kind::kernel: return kernel(s);
      case Kind::fused: return fused(s);
      case Kind::view: return view(s);
      case Kind::unpack: return unpack(s);
      case Kind::accumulate_grad: return accumulate(s);
      case Kind::retain_grad: return retain(s);
      case Kind::release: return release(s);
      case Kind::host:
        if (plan_.graph_.nodes()[s.node].op == &ops::info<ops::Contiguous>) return contiguous(s);
        if (plan_.graph_.nodes()[s.node].op->is(Trait::fresh)) return fresh(s);
        if (host::puts_outside(*plan_.graph_.nodes()[s.node].op)) return put_outside(s);
        [[fallthrough]];
      default:
        for (int i = 0; i < s.results; ++i) hold_result(r[s.operands + i], unknown());
    }
  }

  // Somebody else holds it now, to the end.
  void keep(int32_t r) {
    if (memory_[at(r)] != kNotOurs) ++memories_[at(memory_[at(r)])].holders;
  }

  void lies_over(const Step& s, int i) { found_.lies_over[s.first_register + static_cast<size_t>(i)] = true; }
  bool may_lie_on(int32_t memory, const TensorImpl& cell) const {
    return memory != kNotOurs && memories_[at(memory)].holders == 1 && cell.is_contiguous();
  }

  void kernel(const Step& s) {
    const int32_t* r = run_.registers(s);
    int32_t folded = kNotOurs;  // a slot that is read where it is
    const TensorImpl* folded_cell = nullptr;
    for (int i = 0; i < s.operands; ++i) {
      if (r[i] >= -1) continue;
      const SlotRef& ref = plan_.folded_[at(-2 - r[i])];
      folded_cell = slot(ref.place, ref.slot).value();
      if (is_emptied(slot(ref.place, ref.slot))) folded = empty(slot(ref.place, ref.slot));
    }
    for (int i = 0; i < s.results; ++i) {
      if (s.computes_into(i)) continue;
      const int32_t result = r[s.operands + i];
      const int32_t donor = s.takes < 0 ? -1 : r[s.takes];
      const int32_t memory = s.takes < 0 ? kNotOurs : donor < -1 ? folded : memory_[at(donor)];
      if (s.takes >= 0 && may_lie_on(memory, donor < -1 ? *folded_cell : *cells_->at[at(donor)])) {
        ++memories_[at(memory)].holders;
        hold_result(result, memory);
        lies_over(s, s.operands + i);
      } else {
        hold_result(result, allocate(bytes_of(result)));
      }
    }
    if (s.kind == Kind::kernel) scratch(s.room);
    let_go(folded);
  }

  void fused(const Step& s) {
    const int32_t* r = run_.registers(s);
    const Fused& f = plan_.fused_[at(s.bound)];
    std::vector<std::pair<int32_t, int32_t>> made;  // register, memory
    std::vector<TensorImpl*> inputs, outputs;
    for (int i = 0; i < s.operands; ++i) inputs.push_back(cells_->at[at(r[i])]);
    for (size_t o = 0; o < s.results; ++o) {
      const int32_t result = r[s.operands + o], donor = f.takes[o] < 0 ? -1 : r[f.takes[o]];
      outputs.push_back(f.into[o] ? cells_->at[at(result)] : cells_->own[at(result)].get());
      if (f.into[o]) continue;
      if (donor >= 0 && may_lie_on(memory_[at(donor)], *cells_->at[at(donor)])) {
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
    const Fused& f = plan_.fused_[at(s.bound)];
    const FusedKernel::Temporary more = f.kernel->temporary(inputs.data(), outputs.data());
    found_.groups_one_by_one[at(s.bound)] = more.is_one_by_one;
    need(more.bytes);
    if (!more.is_one_by_one) scratch(f.room);
  }

  // Beside the arena: where it does not lie in it.
  void scratch(int32_t room) {
    if (room >= 0 && plan_.rooms_[at(room)].offset < 0) need(plan_.rooms_[at(room)].bytes);
  }

  void view(const Step& s) {
    const int32_t* r = run_.registers(s);
    const int32_t result = r[s.operands], memory = memory_[at(r[0])];
    std::vector<TensorImpl*> operands;
    for (int i = 0; i < s.operands; ++i) operands.push_back(r[i] < 0 ? nullptr : cells_->at[at(r[i])]);
    const ir::Node& node = plan_.graph_.nodes()[s.node];
    void* attrs = s.attrs.is_patched ? run_.frame->patched.data() + s.attrs.patched_at : s.attrs.fixed;
    node.op->layout({node.op, operands, attrs, node.where, s.results}, *cells_->own[at(result)]);
    keep(r[0]);
    hold_own(result, memory);
  }

  void contiguous(const Step& s) {
    const int32_t* r = run_.registers(s);
    const int32_t result = r[s.operands];
    if (!cells_->at[at(r[0])]->is_contiguous()) return hold_result(result, allocate(bytes_of(result)));
    keep(r[0]);
    hold(result, memory_[at(r[0])]);
    cells_->at[at(result)] = cells_->at[at(r[0])];
    lies_over(s, s.operands);
  }

  void fresh(const Step& s) {
    for (int i = 0; i < s.results; ++i) {
      const int32_t r = run_.registers(s)[s.operands + i];
      hold_result(r, allocate(bytes_of(r)));
    }
  }

  void unpack(const Step& s) {
    const int32_t r = run_.registers(s)[0];
    const Slot& from = slot(s.place, s.slot);
    if (from.packed()) return hold_result(r, unknown());
    hold_own(r, is_emptied(from) ? empty(from) : kNotOurs);
    if (from.value()) cells_->at[at(r)] = from.value();
  }

  // The value, which somebody outside holds from here to the end.
  void put_outside(const Step& s) {
    const int32_t* r = run_.registers(s);
    const int32_t memory = memory_[at(r[0])];
    for (int holder = 0; holder < 2; ++holder) keep(r[0]);
    hold_own(r[s.operands], memory);
  }

  void release(const Step& s) {
    if (run_.request.retain_graph) return;
    const Record& record = *run_.reached.records[s.place];
    for (int i = 0; i < record.slots; ++i)
      if (const Slot& from = record.slot(i); is_emptied(from) && !emptied_.contains(&from))
        let_go(empty(from));
  }
  int32_t empty(const Slot& s) {
    emptied_.insert(&s);
    return memory_of(*s.value());
  }

  // The first gradient of a leaf is taken over or copied, others are added to it.
  void accumulate(const Step& s) {
    const int32_t r = run_.registers(s)[0];
    const TensorImpl& leaf = *run_.bindings[at(s.bound)].leaf;
    if ((leaf.meta && leaf.meta->grad.defined()) || !given_.insert(&leaf).second) return;
    const int32_t memory = memory_[at(r)];
    if (s.dying && memory != kNotOurs && memories_[at(memory)].holders == 1 &&
        has_layout_of_grad(*cells_->at[at(r)], leaf)) {
      lies_over(s, 0);
      return keep(r);
    }
    allocate(bytes_of(r));
  }

  // The first gradient of a box is copied; a sum is in its place before the one that was there goes.
  void retain(const Step& s) {
    const GradBox* box = run_.bindings[at(s.bound)].box.get();
    const int64_t bytes = bytes_of(run_.registers(s)[0]);
    if (box->grad.defined() || !retained_.insert(box).second)
      need(bytes);
    else
      allocate(bytes);
  }

  const Run& run_;
  const Plan& plan_;
  const std::span<const UnpackStep> unpacks_;
  const std::unique_ptr<Frame> cells_;  // layouts; no memory
  std::unordered_map<const Storage*, int32_t> memory_of_storage_;
  std::vector<Memory> memories_;
  std::vector<int32_t> memory_;                  // of each register, into memories_
  std::unordered_set<const Slot*> emptied_;      // so far
  std::unordered_set<const TensorImpl*> given_;  // leaves that have their first gradient
  std::unordered_set<const GradBox*> retained_;  // boxes that have theirs
  int64_t live_, most_;                          // now, during the step
  const Device device_;                          // whose memory is counted
  Run::Outlook found_;
};

Plan::Run::Outlook Plan::Run::outlook(std::span<const UnpackStep> unpacks) const {
  return Forecast(*this, unpacks).outlook();
}

}  // namespace retrograd
