// Recording the segments of a plan: see tracer/plan_graphs.h. A segment is recorded whole, by running its steps; a part whose numbers have changed
// by its launch alone, on the cells that were noted then.
#include <algorithm>
#include <bit>
#include <cstring>

#include "tracer/plan_graphs.h"

namespace retrograd {
namespace {

// A cell on the same memory that does not hold it.
RefPtr<TensorImpl> without_hold(const TensorImpl* x) {
  if (!x) return {};
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->alias(*x);
  cell->set_storage(Storage::wrap(x->storage()->data(), x->storage()->nbytes(), nullptr, nullptr));
  return cell;
}

std::vector<TensorImpl*> pointers(const std::vector<RefPtr<TensorImpl>>& cells) {
  std::vector<TensorImpl*> all;
  for (const auto& cell : cells) all.push_back(cell.get());
  return all;
}

}  // namespace

// While it lives, launches read slots in place of what was copied there, and results lie in memory that is kept. What was computed before the
// segment stays where it is: its register may get another value while the segment is recorded, and the graph has not read it yet.
struct Plan::Run::SlotsInPlace {
  SlotsInPlace(Run& r, size_t n) : run(r), number(n), before(r.frame->at) {
    const Segment& segment = run.plan.segments_.list[number];
    for (size_t i = 0; i < segment.reads.size(); ++i) {
      const auto at = static_cast<size_t>(segment.reads[i].at);
      TensorImpl*& now = run.frame->at[at];
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
    for (const Segment::Read& read : run.plan.segments_.list[number].reads)
      run.frame->at[static_cast<size_t>(read.at)] = before[static_cast<size_t>(read.at)];
    run.recording = nullptr;
  }
  SlotsInPlace(const SlotsInPlace&) = delete;

  Run& run;
  const size_t number;
  const std::vector<TensorImpl*> before;
  std::vector<std::pair<size_t, RefPtr<TensorImpl>>> computed;  // registers, and cells on what they held
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

// Registers are not emptied before finish(): should it fail, the segment begins anew.
void Plan::Run::record(size_t number) {
  Recordings& all_recorded = *frame->recordings;
  Recordings::Recorded& recorded = all_recorded.segments[number];
  const Segment& segment = plan.segments_.list[number];
  if (recorded.graph) {
    all_recorded.stats.updates += std::ssize(segment.parts);
  } else {
    recorded.graph = plan.executor_.new_graph();
    ++all_recorded.stats.recordings;
  }
  recorded.updates.clear();
  const SlotsInPlace slots(*this, number);
  for (size_t p = 0; p < segment.parts.size(); ++p) {
    recorded.graph->begin(p);
    try {
      record_part(number, p);
    } catch (...) {
      recorded.graph->cancel();
      throw;
    }
    recorded.graph->end();
  }
}

void Plan::Run::record_part(size_t number, size_t p) {
  const Segment::Part& part = plan.segments_.list[number].parts[p];
  std::vector<RecordedLaunch>& launches = frame->recordings->segments[number].launches[p];
  launches.clear();
  for (size_t i = part.begin; i < part.end; ++i) {
    const Step& s = plan.steps_[i];
    const std::span<const int32_t> all(registers(s), size_t{s.operands} + s.results);
    const auto cell = [&](int32_t r) {
      return without_hold(r < 0 ? nullptr : frame->at[static_cast<size_t>(r)]);
    };
    RecordedLaunch launch{i};
    const bool changes = part.changes && s.kind != Kind::view;
    if (changes) std::ranges::transform(all.first(s.operands), std::back_inserter(launch.operands), cell);
    step(s, attrs_of(s.attrs));
    if (s.kind == Kind::fused && plan.graph_.nodes()[s.node].op->is(Trait::updates))
      frame->recordings->segments[number].updates.emplace_back(plan, s, *frame);
    if (!changes) continue;
    std::ranges::transform(all.last(s.results), std::back_inserter(launch.results), cell);
    launches.push_back(std::move(launch));
    note_numbers(s);
  }
}

Plan::Recordings::Updates::Updates(const Plan& plan, const Step& s, const Frame& frame) {
  const size_t bytes = plan.graph_.nodes()[s.node].op->attrs_size;
  for (const Attrs& attrs : plan.fused_of(s).attrs) {
    auto begin = plan.patches_.end(), end = begin;
    if (attrs.is_patched)
      end = begin = std::ranges::lower_bound(plan.patches_, attrs.patched_at, {}, &Patch::at);
    while (end != plan.patches_.end() && end->at < attrs.patched_at + bytes) ++end;
    numbers_.emplace_back(begin, end);
  }
  for (size_t n = 1; n < numbers_.size(); ++n) cuts_.push_back(is_cut(n, frame));
}

bool Plan::Recordings::Updates::is_cut(size_t n, const Frame& frame) const {
  const auto is_same = [&](const Patch& p, const Patch& q) {
    const double a = reinterpret_cast<const Scalar*>(frame.patched.data() + p.at)->to_double(),
                 b = reinterpret_cast<const Scalar*>(frame.patched.data() + q.at)->to_double();
    return a == b || std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  };
  return !std::ranges::equal(numbers_[n - 1], numbers_[n], is_same);
}

bool Plan::Recordings::Updates::are_cut_otherwise(const Frame& frame) const {
  for (size_t n = 1; n < numbers_.size(); ++n)
    if (is_cut(n, frame) != cuts_[n - 1]) return true;
  return false;
}

bool Plan::Run::is_cut_otherwise(size_t number) const {
  return std::ranges::any_of(frame->recordings->segments[number].updates,
                             [this](const auto& u) { return u.are_cut_otherwise(*frame); });
}

// f(place, bytes) for each of the attributes of a step that have numbers of the run.
template <class F>
void Plan::Run::for_numbers(const Step& s, F f) const {
  const auto one = [&](const Attrs& attrs, const ir::Node& node) {
    if (attrs.is_patched) f(attrs.patched_at, node.op->attrs_size);
  };
  if (s.kind != Kind::fused) return one(s.attrs, plan.graph_.nodes()[s.node]);
  const Fused& fused = plan.fused_of(s);
  for (size_t n = 0; n < fused.attrs.size(); ++n)
    one(fused.attrs[n], plan.graph_.nodes()[s.node + 1 - fused.attrs.size() + n]);
}

void Plan::Run::note_numbers(const Step& s) {
  for_numbers(s, [&](size_t at, size_t bytes) {
    std::memcpy(frame->recordings->numbers.data() + at, frame->patched.data() + at, bytes);
  });
}

bool Plan::Run::has_new_numbers(const Step& s) const {
  bool is_changed = false;
  for_numbers(s, [&](size_t at, size_t bytes) {
    is_changed |= std::memcmp(frame->recordings->numbers.data() + at, frame->patched.data() + at, bytes) != 0;
  });
  return is_changed;
}

void Plan::Run::renew_numbers(size_t number) {
  const std::vector<std::byte>& recorded_numbers = frame->recordings->numbers;
  if (std::ranges::equal(recorded_numbers, std::span(frame->patched).first(recorded_numbers.size()))) return;
  Recordings::Recorded& recorded = frame->recordings->segments[number];
  for (size_t p = 0; p < recorded.launches.size(); ++p) {
    const std::vector<RecordedLaunch>& launches = recorded.launches[p];
    if (std::ranges::none_of(launches, [&](const auto& l) { return has_new_numbers(plan.steps_[l.step]); }))
      continue;
    recorded.graph->begin(p);
    try {
      for (const RecordedLaunch& l : launches) launch_again(l);
    } catch (...) {
      recorded.graph->cancel();
      throw;
    }
    recorded.graph->end();
    for (const RecordedLaunch& l : launches) note_numbers(plan.steps_[l.step]);
    ++frame->recordings->stats.updates;
  }
}

void Plan::Run::launch_again(const RecordedLaunch& launch) {
  const Step& s = plan.steps_[launch.step];
  const std::vector<TensorImpl*> operands = pointers(launch.operands), results = pointers(launch.results);
  if (s.kind == Kind::fused) {
    const Fused& f = plan.fused_of(s);
    std::vector<const void*> attrs;
    for (const Attrs& a : f.attrs) attrs.push_back(attrs_of(a));
    return f.kernel->run(operands.data(), results.data(), attrs.data(), room(f.room));
  }
  const ir::Node& node = plan.graph_.nodes()[s.node];
  const Call call{node.op, operands, attrs_of(s.attrs), node.where, s.results};
  plan.executor_.launch(s.kernel, call, results.data(), room(s.room));
}

}  // namespace retrograd
