// Recording the segments of a plan, by running their steps: see tracer/plan_graphs.h.
#include <algorithm>
#include <bit>

#include "tracer/plan_graphs.h"

namespace retrograd {

// While it lives, launches read slots in place of what was copied there, and results lie in memory that is kept. What was there before the segment
// stays where it is: its register may get another value while the segment is recorded, and the graph has not read it yet.
struct Plan::Run::SlotsInPlace {
  SlotsInPlace(Run& r, size_t n) : run(r), number(n), before(r.frame->at) {
    const Segment& segment = run.plan.segments_.list[number];
    for (size_t i = 0; i < segment.reads.size(); ++i) {
      const auto at = static_cast<size_t>(segment.reads[i].at);
      TensorImpl*& now = run.frame->at[at];
      if (run.frame->foreign[at]) given.emplace_back(at, run.frame->foreign[at]);
      if (now && now == run.frame->own[at].get()) {
        computed.emplace_back(at, TensorImpl::make());
        computed.back().second->alias(*now);
        now = computed.back().second.get();
      }
      if (const auto& slot = run.frame->recordings->segments[number].reads[i].slot) now = slot.get();
    }
    run.recording = run.frame->recordings.get();
  }
  ~SlotsInPlace() {
    for (const auto& [at, value] : computed) run.frame->own[at]->alias(*value);
    for (auto& [at, value] : given) run.frame->foreign[at] = std::move(value);
    for (const Segment::Read& read : run.plan.segments_.list[number].reads)
      run.frame->at[static_cast<size_t>(read.at)] = before[static_cast<size_t>(read.at)];
    run.recording = nullptr;
  }
  SlotsInPlace(const SlotsInPlace&) = delete;

  Run& run;
  const size_t number;
  const std::vector<TensorImpl*> before;
  // Registers, and what they held: cells on computed values, and values from elsewhere.
  std::vector<std::pair<size_t, RefPtr<TensorImpl>>> computed, given;
};

// A register may have been a view's before.
void Plan::Run::put_memory(size_t r, const Recordings& recordings) {
  TensorImpl& own = *frame->own[r];
  own.set_storage(recordings.memory[r]);
  own.set_storage_offset(0);
  contiguous_strides(own.shape(), own.mutable_strides());
}

void Plan::Run::give_memory(size_t r) {
  if (recording)
    put_memory(r, *recording);
  else
    plan.executor_.allocate(*frame->own[r]);
}

// Registers are not emptied before finish(): should it fail, the segment begins anew. Views behind the last launch are left to that, too.
void Plan::Run::record(size_t number) {
  Recordings& all_recorded = *frame->recordings;
  Recordings::Recorded& recorded = all_recorded.segments[number];
  const Segment& segment = plan.segments_.list[number];
  if (recorded.graph) {
    ++all_recorded.stats.updates;
  } else {
    recorded.graph = plan.executor_.new_graph();
    ++all_recorded.stats.recordings;
  }
  size_t end = segment.end;
  while (plan.steps_[end - 1].kind == Kind::view) --end;
  const SlotsInPlace slots(*this, number);
  recorded.graph->begin();
  try {
    for (size_t i = segment.begin; i < end; ++i) step(plan.steps_[i], attrs_of(plan.steps_[i].attrs));
  } catch (...) {
    recorded.graph->cancel();
    throw;
  }
  recorded.graph->end();
  note_updates(number);
}

// ---- steps of several updates ----------------------------------------------------------------------------------------------------------

void Plan::Run::note_updates(size_t number) {
  std::vector<Recordings::Updates>& updates = frame->recordings->segments[number].updates;
  const Segment& segment = plan.segments_.list[number];
  if (updates.empty())
    for (size_t i = segment.begin; i < segment.end; ++i) {
      const Step& s = plan.steps_[i];
      if (s.kind == Kind::fused && plan.graph_.nodes()[s.node].op->is(Trait::updates))
        updates.emplace_back(plan, s);
    }
  for (Recordings::Updates& u : updates) u.cut(*frame);
}

Plan::Recordings::Updates::Updates(const Plan& plan, const Step& s) : is_cut_(plan.fused_of(s).attrs.size()) {
  const size_t bytes = plan.graph_.nodes()[s.node].op->attrs_size;
  for (const Attrs& attrs : plan.fused_of(s).attrs) {
    auto begin = plan.patches_.end(), end = begin;
    if (attrs.is_patched)
      end = begin = std::ranges::lower_bound(plan.patches_, attrs.patched_at, {}, &Patch::at);
    while (end != plan.patches_.end() && end->at < attrs.patched_at + bytes) ++end;
    numbers_.emplace_back(begin, end);
  }
}

bool Plan::Recordings::Updates::is_parted(size_t n, const Frame& frame) const {
  const auto is_same = [&](const Patch& p, const Patch& q) {
    const double a = reinterpret_cast<const Scalar*>(frame.patched.data() + p.at)->to_double(),
                 b = reinterpret_cast<const Scalar*>(frame.patched.data() + q.at)->to_double();
    return a == b || std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  };
  return !std::ranges::equal(numbers_[n - 1], numbers_[n], is_same);
}

void Plan::Recordings::Updates::cut(const Frame& frame) {
  for (size_t n = 1; n < numbers_.size(); ++n) is_cut_[n] = is_cut_[n] || is_parted(n, frame);
}

bool Plan::Recordings::Updates::have_parted(const Frame& frame) const {
  for (size_t n = 1; n < numbers_.size(); ++n)
    if (!is_cut_[n] && is_parted(n, frame)) return true;
  return false;
}

bool Plan::Run::have_numbers_parted(size_t number) const {
  return std::ranges::any_of(frame->recordings->segments[number].updates,
                             [this](const auto& u) { return u.have_parted(*frame); });
}

}  // namespace retrograd
