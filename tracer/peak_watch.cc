// See tracer/peak_watch.h.
#include "tracer/peak_watch.h"

#include <algorithm>
#include <utility>

#include "engine/allocator.h"

namespace retrograd {
namespace {

thread_local constinit PeakWatch* watch = nullptr;

}  // namespace

PeakWatch::PeakWatch() : outer_(std::exchange(watch, this)) {}
PeakWatch::~PeakWatch() { watch = outer_; }
PeakWatch* PeakWatch::current() { return watch; }

void PeakWatch::add(int64_t planned, int64_t measured, int64_t hook_bytes) {
  ++report_.runs;
  report_.differing += planned != measured;
  report_.hook_bytes = std::max(report_.hook_bytes, hook_bytes);
  if (std::max(planned, measured) <= std::max(report_.planned_bytes, report_.measured_bytes)) return;
  report_.planned_bytes = planned;
  report_.measured_bytes = measured;
}

WatchedRun::WatchedRun(int64_t planned)
    : watch_(std::exchange(watch, nullptr)), planned_(planned), outer_peak_(memory::reset_peak()) {
  measured_ = memory::stats().live_bytes;
}

WatchedRun::~WatchedRun() {
  memory::reset_peak(std::max(outer_peak_, most_));
  watch = watch_;
  watch_->add(planned_, measured_, hook_bytes_);
}

void WatchedRun::before_step() { before_ = memory::stats().live_bytes; }

void WatchedRun::after_step(bool is_code, int64_t held) {
  const int64_t peak = memory::reset_peak();
  most_ = std::max(most_, peak);
  if (is_code)
    hook_bytes_ = std::max(hook_bytes_, peak - before_ + held_);
  else
    measured_ = std::max(measured_, peak - held_);
  held_ = held;
}

}  // namespace retrograd
