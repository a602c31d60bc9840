// See tracer/plan/unpack_prefetch.h.
#include "tracer/plan/unpack_prefetch.h"

#include <algorithm>

#include "engine/bookkeeping.h"
#include "engine/error.h"
#include "tracer/plan/forecast.h"
#include "tracer/plan/planner.h"

namespace retrograd::inline v0 {
namespace {

// Begins a fetch in the same context as an unpack hook (engine/slots.cc).
void begin(const Packed& packed) {
  NoGradGuard no_grad;
  const detail::NoDefaultHooks no_hooks;
  CallScope::Suspend users_own_lines;
  const UnknownLayouts off(false);
  packed.hooks->prefetcher()->begin(packed.payload);
}

}  // namespace

void find_unpacks(Program& program, bool may_stop) {
  struct Pack {
    uint32_t after = 0;  // the step after it
    int32_t code = -1;   // its binding
  };
  std::vector<Pack> packs;  // by value
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const auto step = static_cast<uint32_t>(i);
    const Step& s = program.steps[i];
    const ir::Node& node = program.node(s);
    if (s.kind == StepKind::unpack && may_stop) program.unpacks.push_back({step, 0, -1});
    if (s.kind != StepKind::code) continue;
    if (node.op == &ops::pack) {
      packs.resize(static_cast<size_t>(program.graph.value_count()));
      packs[static_cast<size_t>(node.first_result)] = {step + 1, s.bound};
    } else if (node.op == &ops::unpack) {
      const auto packed = static_cast<size_t>(program.graph.operands(node)[0]);
      const Pack pack = packed < packs.size() ? packs[packed] : Pack();
      program.unpacks.push_back({step, pack.after, pack.code});
    }
  }
}

Packed* UnpackPrefetcher::Payload::packed() const {
  const std::shared_ptr<Slot> held = owned.lock();
  const Slot* found = slot ? slot : held.get();
  return found ? found->packed() : nullptr;
}

UnpackPrefetcher::Payload UnpackPrefetcher::payload_of(const PlanRun& run, const UnpackStep& unpack) {
  const Step& s = run.program().steps[unpack.step];
  if (s.kind == StepKind::unpack) return {&run.slots().slot(s.record, s.slot), {}};
  TensorImpl* const packed = run.frame().at[static_cast<size_t>(run.program().registers_of(s)[0])];
  return {nullptr, run.bindings()[static_cast<size_t>(s.bound)].code->slot({&packed, 1})};
}

// Null: no fetch can begin. For a payload that does not exist yet, as far as its pair says.
Prefetcher* UnpackPrefetcher::prefetcher_of(const PlanRun& run, const UnpackStep& unpack) {
  if (unpack.pack >= 0) {
    SavedTensorHooks* pair = run.bindings()[static_cast<size_t>(unpack.pack)].code->pair();
    return pair ? pair->prefetcher() : nullptr;
  }
  const Packed* packed = payload_of(run, unpack).packed();
  Prefetcher* found = packed ? packed->hooks->prefetcher() : nullptr;
  return found && found->bytes(packed->payload) > 0 ? found : nullptr;
}

std::unique_ptr<UnpackPrefetcher> UnpackPrefetcher::of(const PlanRun& run) {
  std::vector<UnpackStep> unpacks;
  bool is_asked_for = false;
  for (const UnpackStep& unpack : run.program().unpacks) {
    Prefetcher* const prefetcher = prefetcher_of(run, unpack);
    if (!prefetcher) continue;
    unpacks.push_back(unpack);
    is_asked_for |= prefetcher->options().nodes > 0;
  }
  return std::unique_ptr<UnpackPrefetcher>(is_asked_for ? new UnpackPrefetcher(run, std::move(unpacks))
                                                        : nullptr);
}

UnpackPrefetcher::UnpackPrefetcher(const PlanRun& run, std::vector<UnpackStep> unpacks)
    : run_(run), schedule_({}, {}) {
  MemoryTimeline timeline = forecast(run, unpacks);
  for (size_t i = 0; i < unpacks.size(); ++i) waiting_.push_back({unpacks[i], timeline.last[i]});
  std::vector<bool> computes;
  for (const Step& s : run.program().steps)
    computes.push_back(s.kind == StepKind::span || s.kind == StepKind::kernel || s.kind == StepKind::fused ||
                       s.kind == StepKind::hook || s.kind == StepKind::function);
  std::vector<PrefetchSchedule::Together> graphs;
  if (run.runs_graphs())
    for (const Segment& s : run.program().segments.list)
      if (s.is_worth_a_graph()) graphs.push_back({s.begin, s.end});
  schedule_ = PrefetchSchedule(std::move(timeline.live), std::move(computes), graphs);
  find_due();
}

UnpackPrefetcher::~UnpackPrefetcher() {
  for (size_t i = 0; i < begun_; ++i)
    if (const Packed* packed = beginnings_[i].payload.packed())
      packed->hooks->prefetcher()->drop(packed->payload);
}

// The next unpacks whose payloads all exist before the first of them is unpacked.
std::span<const UnpackPrefetcher::Waiting> UnpackPrefetcher::next_batch() const {
  size_t end = planned_;
  while (end < waiting_.size() && waiting_[end].at.earliest <= waiting_[planned_].at.step) ++end;
  return std::span(waiting_).subspan(planned_, end - planned_);
}

void UnpackPrefetcher::plan_next() {
  const std::span<const Waiting> batch = next_batch();
  std::vector<FetchedValue> values;
  std::vector<Payload> payloads;
  for (const Waiting& w : batch) {
    const Payload payload = payload_of(run_, w.at);
    const Packed* packed = payload.packed();
    Prefetcher* const prefetcher = packed ? packed->hooks->prefetcher() : nullptr;
    if (const int64_t bytes = prefetcher ? prefetcher->bytes(packed->payload) : 0; bytes > 0) {
      values.push_back({w.at.step, w.last, due_, bytes, prefetcher->options()});
      payloads.push_back(payload);
    }
  }
  const std::vector<size_t> begins = schedule_.add(values);
  for (size_t i = 0; i < begins.size(); ++i)
    if (begins[i] < values[i].step) beginnings_.push_back({begins[i], payloads[i]});
  std::ranges::stable_sort(std::span(beginnings_).subspan(begun_), {}, &Beginning::step);
  planned_ += batch.size();
}

void UnpackPrefetcher::find_due() {
  due_ = ~size_t{0};
  if (begun_ < beginnings_.size()) due_ = beginnings_[begun_].step;
  size_t ready = planned_ < waiting_.size() ? 0 : due_;
  for (const Waiting& w : next_batch()) ready = std::max<size_t>(ready, w.at.earliest);
  due_ = std::min(due_, ready);
}

void UnpackPrefetcher::before(size_t step) {
  while (is_due(step)) {
    if (begun_ == beginnings_.size() || beginnings_[begun_].step > step) {
      plan_next();
    } else if (const Packed* packed = beginnings_[begun_++].payload.packed()) {
      try {
        begin(*packed);
      } catch (const OutOfMemory&) {
        beginnings_.resize(begun_);
        planned_ = waiting_.size();
      }
    }
    find_due();
  }
}

}  // namespace retrograd
