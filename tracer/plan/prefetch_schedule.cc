// See tracer/plan/prefetch_schedule.h.
#include "tracer/plan/prefetch_schedule.h"

#include <algorithm>

namespace retrograd::inline v0 {
namespace {

void hold(std::vector<int64_t>& live, size_t first, size_t end, int64_t bytes) {
  for (size_t step = first; step < end; ++step) live[step] += bytes;
}

}  // namespace

PrefetchSchedule::PrefetchSchedule(std::vector<int64_t> live, std::vector<bool> computes,
                                   std::span<const Together> together)
    : unmoved_(live), live_(std::move(live)), computes_(std::move(computes)), is_inside_(computes_.size()) {
  for (const Together& t : together)
    for (size_t step = t.begin; step < t.end; ++step) {
      computes_[step] = step == t.begin;
      is_inside_[step] = step > t.begin;
    }
}

std::vector<size_t> PrefetchSchedule::add(std::span<const FetchedValue> values) {
  for (const FetchedValue& a : values) {
    hold(unmoved_, a.step, a.last + 1, a.bytes);
    hold(live_, a.step, a.last + 1, a.bytes);
  }
  const int64_t peak = unmoved_.empty() ? 0 : std::ranges::max(unmoved_);
  std::vector<size_t> begins;
  for (const FetchedValue& a : values) {
    begins.push_back(begin_of(a, peak));
    hold(live_, begins.back(), a.step, a.bytes);
  }
  return begins;
}

size_t PrefetchSchedule::begin_of(const FetchedValue& a, int64_t peak) const {
  size_t begin = a.step, step = a.step;
  const auto has_room = [&] { return live_[step - 1] + a.bytes - peak <= a.options.room_bytes; };
  for (int nodes = 0; nodes < a.options.nodes && step > a.earliest && has_room();) {
    nodes += computes_[--step];
    if (!is_inside_[step]) begin = step;
  }
  return begin;
}

}  // namespace retrograd
