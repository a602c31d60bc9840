// See tracer/plan/run_meter.h.
#include "tracer/plan/run_meter.h"

#include <algorithm>

#include "engine/bookkeeping.h"
#include "engine/region.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace {

// The cell on this memory that a slot holds.
const TensorImpl* held_on(const Slot& slot, const Storage* memory) {
  const TensorImpl* found = nullptr;
  each_held(slot, [&](const TensorImpl& cell) {
    if (cell.storage().get() == memory) found = &cell;
  });
  return found;
}

}  // namespace

RunMeter::RunMeter(PlanRun& run, MemoryTimeline timeline)
    : run_(run),
      program_(run.program()),
      measured_(timeline.most, program_.executor),
      lies_over_(std::move(timeline.lies_over)),
      from_code_(program_.layout.count()) {
  run.launcher().one_by_one = std::move(timeline.one_by_one);
}

bool RunMeter::calls_code(const Step& s) const {
  const OpInfo& op = *program_.node(s).op;
  switch (s.kind) {
    case StepKind::hook:
    case StepKind::function:
    case StepKind::code:
    case StepKind::drop: return true;  // what user code packed may go with it
    case StepKind::host: return &op != &ops::info<ops::Contiguous> && !op.is(Trait::fresh);
    case StepKind::unpack:
      return run_.slots().slot(s.record, s.slot).packed() && !run_.slots().part(s.record, s.slot);
    default: return false;
  }
}

// ---- holders of memory ---------------------------------------------------------------------------------------------

RunMeter::Known* RunMeter::find(const Storage* memory) {
  const auto it = std::ranges::find(known_, memory, &Known::memory);
  return it == known_.end() ? nullptr : &*it;
}

void RunMeter::know(const TensorImpl* x, bool came_from_code) {
  if (!x || !x->storage() || find(x->storage().get())) return;
  const Storage& memory = *x->storage();
  if (memory.is_external() || memory.nbytes() == 0 || !(x->device() == program_.device())) return;
  Known k{&memory, memory.nbytes()};
  for (Record* record : run_.slots().records)
    for (int i = 0; !run_.slots().retain && i < record->slots; ++i)
      if (held_on(record->slot(i), &memory)) k.slots.push_back(&record->slot(i));
  for (Region* region : run_.slots().regions)
    for (size_t i = 0; !run_.slots().retain && i < region->kept_count(); ++i)
      if (held_on(region->kept_slot(i), &memory)) k.slots.push_back(&region->kept_slot(i));
  k.is_shared = is_shared(k);
  if (!came_from_code && k.is_shared) return;  // the forecast never releases it
  k.is_planned = k.is_kept = is_held(k, true);
  k.is_kept &= k.is_shared;
  known_.push_back(std::move(k));
}

// Whether a register or a slot of the run holds it; `planned`: one whose value did not come from user code.
bool RunMeter::is_held(const Known& k, bool planned) const {
  for (size_t r = 0; r < from_code_.size(); ++r)
    if (const TensorImpl* x = run_.frame().at[r];
        x && x->storage().get() == k.memory && !(planned && from_code_[r]))
      return true;
  return std::ranges::any_of(k.slots, [&](const Slot* slot) { return held_on(*slot, k.memory); });
}

bool RunMeter::is_shared(const Known& k) const {
  std::vector<std::pair<const TensorImpl*, uint32_t>>
      cells;  // with the number of references that the run holds, and views that it holds
  const auto hold = [&](const TensorImpl* x) {
    if (!x || x->storage().get() != k.memory) return;
    const auto it = std::ranges::find(cells, x, &std::pair<const TensorImpl*, uint32_t>::first);
    if (it == cells.end())
      cells.emplace_back(x, 1);
    else
      ++it->second;
  };
  for (const TensorImpl* x : run_.frame().at) hold(x);
  for (const Slot* slot : k.slots) each_held(*slot, [&](const TensorImpl& x) { hold(&x); });
  for (size_t views = cells.size(), i = 0; i < views; ++i) hold(cells[i].first->base.get());
  const auto aliased = std::ranges::count_if(k.slots, [&](const Slot* slot) {
    const Packed* const packed = slot->packed();
    return packed && packed->structure && packed->aliased.get() == k.memory;
  });
  return k.memory->ref_count() != cells.size() + static_cast<size_t>(aliased) ||
         std::ranges::any_of(cells, [](const auto& c) { return c.first->ref_count() != c.second; });
}

// ---- the memory of a result ---------------------------------------------------------------------------------------

// The operand whose memory a result has, or may have; for a leaf's gradient, the arriving value. -1: the result has
// separate memory, or comes from user code.
int32_t RunMeter::source(const Step& s, size_t result) const {
  const OpInfo& op = *program_.node(s).op;
  int8_t operand = -1;
  switch (s.kind) {
    case StepKind::span:
    case StepKind::kernel: operand = s.takes; break;
    case StepKind::fused: operand = program_.fused_of(s).takes[result]; break;
    case StepKind::host:
      if (&op == &ops::info<ops::Contiguous>) operand = 0;
      break;
    case StepKind::code:
      if (ops::puts_outside(op)) operand = 0;
      break;
    case StepKind::view:
    case StepKind::accumulate_grad: operand = 0; break;
    default: break;
  }
  return operand < 0 ? -1 : operands(s)[static_cast<size_t>(operand)];
}

RunMeter::Result RunMeter::expected(const Step& s, size_t result) const {
  const int32_t r = source(s, result);
  const size_t at = s.kind == StepKind::accumulate_grad ? 0 : s.operands + result;
  const OpInfo& op = *program_.node(s).op;
  const bool is_same = s.kind == StepKind::view || (s.kind == StepKind::code && ops::puts_outside(op));
  Result found{.lies_over = is_same || lies_over_[s.first_register + at]};
  if (r < 0 || !cell(r)) return found;
  found.operand = cell(r)->storage().get();
  found.bytes = found.operand->nbytes();
  found.is_from_code = from_code_[static_cast<size_t>(r)];
  return found;
}

// Notes the memory of a result, or of a leaf's gradient.
void RunMeter::note_memory(const Result& expected, const TensorImpl& x) {
  const bool is_over = x.storage().get() == expected.operand;
  if (is_over == expected.lies_over || !expected.operand) return;
  now_.within += is_over ? -expected.bytes : expected.is_from_code ? x.storage()->nbytes() : expected.bytes;
}

void RunMeter::note_result(const Result& expected, int32_t r) {
  const TensorImpl* x = cell(r);
  if (!x || !x->storage()) return;
  const bool is_given = now_.is_code && !expected.operand;
  const bool is_from_code = is_given || (expected.is_from_code && expected.lies_over);
  from_code_[static_cast<size_t>(r)] = is_from_code;
  note_memory(expected, *x);
  if (is_from_code) know(x, true);
}

// A leaf holds the memory that it has taken over from here on.
void RunMeter::note_leaf(const Result& expected, const TensorImpl& grad) {
  Known* const taken = find(grad.storage().get());
  if (taken) {
    taken->is_shared = true;
    taken->is_kept = taken->is_planned || !expected.lies_over;
  } else if (expected.is_from_code && expected.lies_over) {
    unseen_ += grad.storage()->nbytes();
  }
  note_memory(expected, grad);
}

// ---- before, during and after a step ------------------------------------------------------------------------------

void RunMeter::before(const Step& s) {
  now_.is_code = calls_code(s);
  now_.within = 0;
  now_.expected.clear();
  for (int32_t r : s.kind == StepKind::drop ? dying(s) : operands(s))
    if (now_.is_code) know(cell(r), false);
  for (Known& k : known_) k.is_shared = is_shared(k);
  for (size_t o = 0; o < s.results; ++o) now_.expected.push_back(expected(s, o));
  now_.is_first =
      s.kind == StepKind::accumulate_grad && !(leaf_of(s).meta && leaf_of(s).meta->grad.defined());
  if (now_.is_first) now_.expected.push_back(expected(s, 0));
  if (now_.is_code && s.results == 1)
    if (Known* k = find(now_.expected[0].operand)) k->is_kept = k->is_planned;  // it is stored outside
  now_.live = program_.executor.live_bytes();
  measured_.before_step();
}

void RunMeter::called() {
  if (!now_.is_code) return;
  for (Known& k : known_) k.is_shared = is_shared(k);
}

int64_t RunMeter::unplanned() const {
  int64_t bytes = unseen_;
  for (const Known& k : known_) bytes += k.unplanned();
  return bytes;
}

// A change of live bytes in a step that calls code is attributed to the code if the plan did not cause it.
void RunMeter::look(size_t known_before) {
  int64_t bytes = unplanned_ + program_.executor.live_bytes() - now_.live;
  for (size_t i = 0; i < known_.size(); ++i) {
    Known& k = known_[i];
    const bool was_planned = k.is_planned;
    k.is_planned = k.is_kept || is_held(k, true);
    k.is_live = k.is_shared || is_held(k, false);
    if (i < known_before) bytes += k.bytes * (was_planned - k.is_planned);
  }
  if (now_.is_code) unseen_ += bytes - unplanned();
  std::erase_if(known_, [&](const Known& k) {
    const bool is_gone = !is_held(k, false);
    if (is_gone) unseen_ += k.unplanned();
    return is_gone;
  });
  unplanned_ = unplanned();
}

void RunMeter::after(const Step& s) {
  const size_t known_before = known_.size();
  for (size_t o = 0; o < s.results; ++o) note_result(now_.expected[o], results(s)[o]);
  if (now_.is_first) note_leaf(now_.expected[0], leaf_of(s).meta->grad.impl());
  look(known_before);
  measured_.after_step(now_.is_code, unplanned_, now_.within);
}

void RunMeter::begin_code() {
  now_.live = program_.executor.live_bytes();
  measured_.before_step();
}

void RunMeter::end_code() {
  const int64_t bytes = program_.executor.live_bytes() - now_.live;
  unseen_ += bytes;
  unplanned_ += bytes;
  measured_.after_step(true, unplanned_);
}

}  // namespace retrograd
