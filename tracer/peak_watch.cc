// See tracer/peak_watch.h.
#include "tracer/peak_watch.h"

#include <algorithm>
#include <utility>

#include "engine/device_scratch.h"

namespace retrograd {
namespace {

thread_local constinit PeakWatch* watch = nullptr;

}  // namespace

PeakWatch::PeakWatch() : outer_(std::exchange(watch, this)) {}
PeakWatch::~PeakWatch() { watch = outer_; }
PeakWatch* PeakWatch::current() { return watch; }

void PeakReport::add(const PeakReport& other) {
  runs += other.runs;
  differing += other.differing;
  hook_bytes = std::max(hook_bytes, other.hook_bytes);
  scratch_bytes = std::max(scratch_bytes, other.scratch_bytes);
  if (std::max(other.planned_bytes, other.measured_bytes) <= std::max(planned_bytes, measured_bytes)) return;
  planned_bytes = other.planned_bytes;
  measured_bytes = other.measured_bytes;
}

void PeakWatch::add(int64_t planned, int64_t measured, int64_t hook_bytes, int64_t scratch_bytes) {
  report_.add({1, planned != measured, planned, measured, hook_bytes, scratch_bytes});
}

WatchedRun::WatchedRun(int64_t planned, Executor& executor)
    : watch_(std::exchange(watch, nullptr)),
      executor_(executor),
      planned_(planned),
      outer_peak_(executor.reset_peak()) {
  measured_ = executor_.live_bytes();
}

WatchedRun::~WatchedRun() {
  executor_.reset_peak(std::max(outer_peak_, most_));
  watch = watch_;
  watch_->add(planned_, measured_, hook_bytes_, scratch_bytes_);
}

void WatchedRun::before_step() {
  before_ = executor_.live_bytes();
  device_scratch.reset_peak();
}

void WatchedRun::after_step(bool is_code, int64_t beside, int64_t within) {
  const int64_t peak = executor_.reset_peak(), scratch = device_scratch.reset_peak();
  most_ = std::max(most_, peak);
  scratch_bytes_ = std::max(scratch_bytes_, scratch);
  if (is_code)
    hook_bytes_ = std::max(hook_bytes_, peak - before_ + beside_);
  else
    measured_ = std::max(measured_, peak - beside_ - within - scratch);
  hook_bytes_ = std::max(hook_bytes_, beside);
  beside_ = beside;
}

}  // namespace retrograd
