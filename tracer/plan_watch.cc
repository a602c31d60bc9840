// Measuring a run of a plan: see tracer/peak_watch.h, and Plan::Watch in tracer/plan_run.h; start reading at look().
//
// Of known memory two things count: whether it is **live**, and whether it is **planned**, which is what the forecast takes it for. Memory that
// the plan made and showed to code of the user's is planned until the last register that did not get it from such code lets go of it; if it
// is live then, that code holds it, and its bytes are beside the plan from there on. What such code gave is never planned.
// The forecast says which results lie on their operands. That comes out otherwise where such code holds the operand, too, or gave it in another
// layout than the forecast took it for. Then the memory that a result has, or has not, got counts as the forecast has it.
#include <algorithm>

#include "ir/bookkeeping.h"
#include "ops/shape_ops.h"
#include "tracer/host_node.h"
#include "tracer/plan_run.h"

namespace retrograd {

Plan::Watch::Watch(Run& run, Run::Outlook outlook)
    : run_(run),
      measured_(outlook.most, run.plan.executor_),
      lies_over_(std::move(outlook.lies_over)),
      from_code_(run.frame->at.size()) {
  run.groups_one_by_one = std::move(outlook.groups_one_by_one);
}

bool Plan::Watch::calls_code(const Step& s) const {
  const OpInfo& op = *run_.plan.graph_.nodes()[s.node].op;
  switch (s.kind) {
    case Kind::hook:
    case Kind::function: return true;
    case Kind::host: return &op != &ops::info<ops::Contiguous> && !op.is(Trait::fresh);
    case Kind::unpack: return run_.reached.records[s.place]->slot(static_cast<int>(s.slot)).packed();
    default: return false;
  }
}

// ---- who holds memory ----------------------------------------------------------------------------------------------------------------

Plan::Watch::Known* Plan::Watch::find(const Storage* memory) {
  const auto it = std::ranges::find(known_, memory, &Known::memory);
  return it == known_.end() ? nullptr : &*it;
}

void Plan::Watch::know(const TensorImpl* x, bool came_from_code) {
  if (!x || !x->storage() || find(x->storage().get())) return;
  const Storage& memory = *x->storage();
  if (memory.is_external() || memory.nbytes() == 0 || !(x->device() == run_.plan.device())) return;
  Known k{&memory, memory.nbytes()};
  for (Record* record : run_.reached.records)
    for (int i = 0; !run_.request.retain_graph && i < record->slots; ++i)
      if (const TensorImpl* value = record->slot(i).value(); value && value->storage().get() == &memory)
        k.slots.push_back(&record->slot(i));
  k.is_shared = is_shared(k);
  if (!came_from_code && k.is_shared) return;  // the forecast never lets go of it
  k.is_planned = k.is_kept = is_held(k, true);
  k.is_kept &= k.is_shared;
  known_.push_back(std::move(k));
}

// By a register or a slot of the run; `planned`: by one whose value did not come from code of the user's.
bool Plan::Watch::is_held(const Known& k, bool planned) const {
  for (size_t r = 0; r < from_code_.size(); ++r)
    if (const TensorImpl* x = run_.frame->at[r];
        x && x->storage().get() == k.memory && !(planned && from_code_[r]))
      return true;
  return std::ranges::any_of(k.slots, [](const Slot* slot) { return slot->value() != nullptr; });
}

bool Plan::Watch::is_shared(const Known& k) const {
  std::vector<std::pair<const TensorImpl*, uint32_t>>
      cells;  // and how often the run holds each, and views that it holds
  const auto hold = [&](const TensorImpl* x) {
    if (!x || x->storage().get() != k.memory) return;
    const auto it = std::ranges::find(cells, x, &std::pair<const TensorImpl*, uint32_t>::first);
    if (it == cells.end())
      cells.emplace_back(x, 1);
    else
      ++it->second;
  };
  for (const TensorImpl* x : run_.frame->at) hold(x);
  for (const Slot* slot : k.slots) hold(slot->value());
  for (size_t views = cells.size(), i = 0; i < views; ++i) hold(cells[i].first->base.get());
  return k.memory->ref_count() != cells.size() ||
         std::ranges::any_of(cells, [](const auto& c) { return c.first->ref_count() != c.second; });
}

// ---- what a result lies on -----------------------------------------------------------------------------------------------------------

// The operand whose memory a result has, or may have; of a leaf's gradient, what arrives. -1: it has its own, or is given.
int32_t Plan::Watch::source(const Step& s, size_t result) const {
  const OpInfo& op = *run_.plan.graph_.nodes()[s.node].op;
  int8_t operand = -1;
  switch (s.kind) {
    case Kind::span:
    case Kind::kernel: operand = s.takes; break;
    case Kind::fused: operand = run_.plan.fused_of(s).takes[result]; break;
    case Kind::host:
      if (&op != &ops::info<ops::Contiguous> && !host::puts_outside(op)) break;
      [[fallthrough]];
    case Kind::view:
    case Kind::accumulate_grad: operand = 0; break;
    default: break;
  }
  return operand < 0 ? -1 : operands(s)[static_cast<size_t>(operand)];
}

Plan::Watch::Result Plan::Watch::expected(const Step& s, size_t result) const {
  const int32_t r = source(s, result);
  const size_t at = s.kind == Kind::accumulate_grad ? 0 : s.operands + result;
  const OpInfo& op = *run_.plan.graph_.nodes()[s.node].op;
  const bool is_same = s.kind == Kind::view || (s.kind == Kind::host && host::puts_outside(op));
  Result found{.lies_over = is_same || lies_over_[s.first_register + at]};
  if (r < 0 || !cell(r)) return found;
  found.operand = cell(r)->storage().get();
  found.bytes = found.operand->nbytes();
  found.is_from_code = from_code_[static_cast<size_t>(r)];
  return found;
}

// A result, or a leaf's gradient, has this memory.
void Plan::Watch::note_memory(const Result& expected, const TensorImpl& x) {
  const bool is_over = x.storage().get() == expected.operand;
  if (is_over == expected.lies_over || !expected.operand) return;
  within_ += is_over ? -expected.bytes : expected.is_from_code ? x.storage()->nbytes() : expected.bytes;
}

void Plan::Watch::note_result(const Result& expected, int32_t r) {
  const TensorImpl* x = cell(r);
  if (!x || !x->storage()) return;
  const bool is_given = is_code_ && !expected.operand;
  const bool is_from_code = is_given || (expected.is_from_code && expected.lies_over);
  from_code_[static_cast<size_t>(r)] = is_from_code;
  note_memory(expected, *x);
  if (is_from_code) know(x, true);
}

// What a leaf has taken over it holds from here on.
void Plan::Watch::note_leaf(const Result& expected, const TensorImpl& grad) {
  Known* const taken = find(grad.storage().get());
  if (taken) {
    taken->is_shared = true;
    taken->is_kept = taken->is_planned || !expected.lies_over;
  } else if (expected.is_from_code && expected.lies_over) {
    unseen_ += grad.storage()->nbytes();
  }
  note_memory(expected, grad);
}

// ---- before, during and behind a step ------------------------------------------------------------------------------------------------

void Plan::Watch::before(const Step& s) {
  is_code_ = calls_code(s);
  within_ = 0;
  expected_.clear();
  for (int32_t r : operands(s))
    if (is_code_) know(cell(r), false);
  for (Known& k : known_) k.is_shared = is_shared(k);
  for (size_t o = 0; o < s.results; ++o) expected_.push_back(expected(s, o));
  is_first_ = s.kind == Kind::accumulate_grad && !(leaf_of(s).meta && leaf_of(s).meta->grad.defined());
  if (is_first_) expected_.push_back(expected(s, 0));
  if (is_code_ && s.results == 1)
    if (Known* k = find(expected_[0].operand)) k->is_kept = k->is_planned;  // it is put outside
  live_ = run_.plan.executor_.live_bytes();
  measured_.before_step();
}

void Plan::Watch::called() {
  if (!is_code_) return;
  for (Known& k : known_) k.is_shared = is_shared(k);
}

int64_t Plan::Watch::beside() const {
  int64_t bytes = unseen_;
  for (const Known& k : known_) bytes += k.beside();
  return bytes;
}

// What a step that calls code has changed in live bytes, and the plan did not, is that code's doing.
void Plan::Watch::look(size_t known_before) {
  int64_t bytes = beside_ + run_.plan.executor_.live_bytes() - live_;
  for (size_t i = 0; i < known_.size(); ++i) {
    Known& k = known_[i];
    const bool was_planned = k.is_planned;
    k.is_planned = k.is_kept || is_held(k, true);
    k.is_live = k.is_shared || is_held(k, false);
    if (i < known_before) bytes += k.bytes * (was_planned - k.is_planned);
  }
  if (is_code_) unseen_ += bytes - beside();
  std::erase_if(known_, [&](const Known& k) {
    const bool is_gone = !is_held(k, false);
    if (is_gone) unseen_ += k.beside();
    return is_gone;
  });
  beside_ = beside();
}

void Plan::Watch::after(const Step& s) {
  const size_t known_before = known_.size();
  for (size_t o = 0; o < s.results; ++o) note_result(expected_[o], results(s)[o]);
  if (is_first_) note_leaf(expected_[0], leaf_of(s).meta->grad.impl());
  look(known_before);
  measured_.after_step(is_code_, beside_, within_);
}

void Plan::Watch::beside(const std::function<void()>& code) {
  live_ = run_.plan.executor_.live_bytes();
  measured_.before_step();
  code();
  const int64_t bytes = run_.plan.executor_.live_bytes() - live_;
  unseen_ += bytes;
  beside_ += bytes;
  measured_.after_step(true, beside_);
}

}  // namespace retrograd
