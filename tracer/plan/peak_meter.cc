// See tracer/plan/peak_meter.h.
#include "tracer/plan/peak_meter.h"

#include <algorithm>
#include <utility>

#include "engine/device_scratch.h"

namespace retrograd::inline v0 {
namespace {

thread_local constinit PeakMeter* open = nullptr;

}  // namespace

PeakMeter::PeakMeter() : outer_(std::exchange(open, this)) {}
PeakMeter::~PeakMeter() { open = outer_; }
PeakMeter* PeakMeter::current() { return open; }

void PeakReport::add(const PeakReport& other) {
  runs += other.runs;
  differing += other.differing;
  hook_bytes = std::max(hook_bytes, other.hook_bytes);
  scratch_bytes = std::max(scratch_bytes, other.scratch_bytes);
  if (std::max(other.planned_bytes, other.measured_bytes) <= std::max(planned_bytes, measured_bytes)) return;
  planned_bytes = other.planned_bytes;
  measured_bytes = other.measured_bytes;
}

void PeakMeter::add(int64_t planned, int64_t measured, int64_t hook_bytes, int64_t scratch_bytes) {
  report_.add({1, planned != measured, planned, measured, hook_bytes, scratch_bytes});
}

MeteredRun::MeteredRun(int64_t planned, Executor& executor)
    : meter_(std::exchange(open, nullptr)),
      executor_(executor),
      planned_(planned),
      outer_peak_(executor.reset_peak()) {
  measured_ = executor_.live_bytes();
}

MeteredRun::~MeteredRun() {
  executor_.reset_peak(std::max(outer_peak_, most_));
  open = meter_;
  meter_->add(planned_, measured_, hook_bytes_, scratch_bytes_);
}

void MeteredRun::before_step() {
  before_ = executor_.live_bytes();
  device_scratch.reset_peak();
}

void MeteredRun::after_step(bool is_code, int64_t unplanned, int64_t within) {
  const int64_t peak = executor_.reset_peak(), scratch = device_scratch.reset_peak();
  most_ = std::max(most_, peak);
  scratch_bytes_ = std::max(scratch_bytes_, scratch);
  if (is_code)
    hook_bytes_ = std::max(hook_bytes_, peak - before_ + unplanned_);
  else
    measured_ = std::max(measured_, peak - unplanned_ - within - scratch);
  hook_bytes_ = std::max(hook_bytes_, unplanned);
  unplanned_ = unplanned;
}

}  // namespace retrograd
