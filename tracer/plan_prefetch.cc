// Unpacking ahead: see tracer/prefetch.h for when, hooks/prefetch.h for what; start reading at Early::before().
//
// Which steps call an unpack hook is known to a plan; which pair they call, and what its payloads are, to a run. In a captured backward, and in
// that of a compiled function, the payloads are there when the run begins. In a step that is recorded whole they are made by it: values are
// planned in **batches**, each when the last payload of it has been packed, before the first of them is unpacked.
//
// In a step that runs as graphs of launches, values are begun between the graphs.
//
// Only begun is what will come: errors, version checks and the order of hooks stay at the unpacks. What was begun and not unpacked, since an
// exception ended the run, is dropped with the run, and its payload is as before. Where memory is short, nothing more is begun.
#include <algorithm>

#include "engine/error.h"
#include "ir/bookkeeping.h"
#include "tracer/host_node.h"
#include "tracer/plan_run.h"

namespace retrograd {
namespace {

HostCode* code_of(const ir::Node& node) { return static_cast<const HostAttrs*>(node.attrs)->code; }

// As an unpack hook is called (engine/tape.cc).
void begin(const Packed& packed) {
  NoGradGuard no_grad;
  const detail::NoDefaultHooks no_hooks;
  CallScope::Suspend users_own_lines;
  const UnknownLayouts off(false);
  packed.hooks->prefetcher()->begin(packed.payload);
}

}  // namespace

void Plan::find_unpacks() {
  std::vector<std::pair<uint32_t, const HostCode*>> packs;  // by value: the step behind, the code
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto step = static_cast<uint32_t>(i);
    const Step& s = steps_[i];
    const ir::Node& node = graph_.nodes()[s.node];
    if (s.kind == Kind::unpack && log_.may_leave) unpacks_.push_back({step, 0, nullptr});
    if (s.kind != Kind::host) continue;
    if (node.op == &host::pack) {
      packs.resize(static_cast<size_t>(graph_.value_count()));
      packs[static_cast<size_t>(node.first_result)] = {step + 1, code_of(node)};
    } else if (node.op == &host::unpack) {
      const auto parcel = static_cast<size_t>(graph_.operands(node)[0]);
      const auto [behind, pack] =
          parcel < packs.size() ? packs[parcel] : std::pair<uint32_t, const HostCode*>();
      unpacks_.push_back({step, behind, pack});
    }
  }
}

Packed* Plan::Early::Payload::packed() const {
  const std::shared_ptr<Slot> held = parcel.lock();
  const Slot* found = slot ? slot : held.get();
  return found ? found->packed() : nullptr;
}

Plan::Early::Payload Plan::Early::payload_of(const Run& run, const UnpackStep& unpack) {
  const Step& s = run.plan.steps_[unpack.step];
  if (s.kind == Kind::unpack) return {&run.reached.records[s.place]->slot(static_cast<int>(s.slot)), {}};
  TensorImpl* const parcel = run.frame->at[static_cast<size_t>(run.registers(s)[0])];
  return {nullptr, code_of(run.plan.graph_.nodes()[s.node])->slot({&parcel, 1})};
}

// Null: nothing can be begun. Of a payload that is still to be made, as far as its pair says.
Prefetcher* Plan::Early::prefetcher_of(const Run& run, const UnpackStep& unpack) {
  if (unpack.pack) {
    SavedTensorHooks* pair = unpack.pack->pair();
    return pair ? pair->prefetcher() : nullptr;
  }
  const Packed* packed = payload_of(run, unpack).packed();
  Prefetcher* found = packed ? packed->hooks->prefetcher() : nullptr;
  return found && found->bytes(packed->payload) > 0 ? found : nullptr;
}

std::unique_ptr<Plan::Early> Plan::Early::of(const Run& run) {
  std::vector<UnpackStep> unpacks;
  bool is_asked_for = false;
  for (const UnpackStep& unpack : run.plan.unpacks_) {
    Prefetcher* const prefetcher = prefetcher_of(run, unpack);
    if (!prefetcher) continue;
    unpacks.push_back(unpack);
    is_asked_for |= prefetcher->options().nodes > 0;
  }
  return std::unique_ptr<Early>(is_asked_for ? new Early(run, std::move(unpacks)) : nullptr);
}

Plan::Early::Early(const Run& run, std::vector<UnpackStep> unpacks) : run_(run), schedule_({}, {}) {
  Run::Outlook outlook = run.outlook(unpacks);
  for (size_t i = 0; i < unpacks.size(); ++i) waiting_.push_back({unpacks[i], outlook.last[i]});
  std::vector<bool> computes;
  for (const Step& s : run.plan.steps_)
    computes.push_back(s.kind == Kind::span || s.kind == Kind::kernel || s.kind == Kind::fused ||
                       s.kind == Kind::hook || s.kind == Kind::function);
  std::vector<PrefetchSchedule::Together> graphs;
  if (run.plan.records_ && !run.one_by_one)
    for (const Segment& s : run.plan.segments_.list)
      if (s.is_worth_a_graph()) graphs.push_back({s.begin, s.end});
  schedule_ = PrefetchSchedule(std::move(outlook.live), std::move(computes), graphs);
  find_due();
}

Plan::Early::~Early() {
  for (size_t i = 0; i < begun_; ++i)
    if (const Packed* packed = beginnings_[i].payload.packed())
      packed->hooks->prefetcher()->drop(packed->payload);
}

// Those whose payloads are all there before the first of them is unpacked.
std::span<const Plan::Early::Waiting> Plan::Early::next_batch() const {
  size_t end = planned_;
  while (end < waiting_.size() && waiting_[end].at.earliest <= waiting_[planned_].at.step) ++end;
  return std::span(waiting_).subspan(planned_, end - planned_);
}

void Plan::Early::plan_next() {
  const std::span<const Waiting> batch = next_batch();
  std::vector<Arrival> arrivals;
  std::vector<Payload> payloads;
  for (const Waiting& w : batch) {
    const Payload payload = payload_of(run_, w.at);
    const Packed* packed = payload.packed();
    Prefetcher* const prefetcher = packed ? packed->hooks->prefetcher() : nullptr;
    if (const int64_t bytes = prefetcher ? prefetcher->bytes(packed->payload) : 0; bytes > 0) {
      arrivals.push_back({w.at.step, w.last, due_, bytes, prefetcher->options()});
      payloads.push_back(payload);
    }
  }
  const std::vector<size_t> begins = schedule_.add(arrivals);
  for (size_t i = 0; i < begins.size(); ++i)
    if (begins[i] < arrivals[i].step) beginnings_.push_back({begins[i], payloads[i]});
  std::ranges::stable_sort(std::span(beginnings_).subspan(begun_), {}, &Beginning::step);
  planned_ += batch.size();
}

void Plan::Early::find_due() {
  due_ = ~size_t{0};
  if (begun_ < beginnings_.size()) due_ = beginnings_[begun_].step;
  size_t ready = planned_ < waiting_.size() ? 0 : due_;
  for (const Waiting& w : next_batch()) ready = std::max<size_t>(ready, w.at.earliest);
  due_ = std::min(due_, ready);
}

void Plan::Early::before(size_t step) {
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
