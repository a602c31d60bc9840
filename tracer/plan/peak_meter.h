// PeakMeter: checks whether the peaks of plans match the forecasts.
//
// During the lifetime of a PeakMeter, each run of a plan on its thread first forecasts the peak of live tensor data
// in bytes (tracer/plan/forecast.h), then measures the peak, and both go into the report. All memory of the plan's
// executor counts (Executor::live_bytes): on the CPU all memory counted by memory::stats in the process, on a device
// all memory handed out by its allocator. This covers tensors, arenas and, on the CPU, scratch memory of kernels.
// Scratch memory that a device's kernels take while they are launched is reported separately, and is added to the
// plan's bytes in the steps that need it. Memory that user code, such as a pack hook, allocates or keeps inside a run
// cannot be predicted: it is reported separately and is part of neither figure. A plan is assumed to free values
// shown to user code as if only the plan held them.
//
// Limits: other threads that allocate during a run, and other runs that begin inside hooks, are counted as part of
// this run. Nested runs are not measured. Without an open meter a run costs one test of a thread-local pointer.
#pragma once

#include <cstdint>
#include <string>

#include "engine/executor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

struct PeakReport {
  int64_t runs = 0;
  int64_t differing = 0;       // runs whose measured peak is not the planned one
  int64_t planned_bytes = 0;   // of the run with the highest peak
  int64_t measured_bytes = 0;  // of the same run
  int64_t hook_bytes = 0;      // the most live in a run because of user code
  int64_t scratch_bytes = 0;   // the most scratch memory that a device's kernels took in a step

  /// Adds the measurements of another report.
  void add(const PeakReport& other);
};

class PeakMeter {
 public:
  PeakMeter();
  ~PeakMeter();
  PeakMeter(const PeakMeter&) = delete;

  const PeakReport& report() const { return report_; }
  /// Adds a run.
  void add(int64_t planned, int64_t measured, int64_t hook_bytes, int64_t scratch_bytes);
  /// The innermost meter of this thread; null: none, or a run is being measured.
  static PeakMeter* current();

 private:
  friend class MeteredRun;
  PeakReport report_;
  PeakMeter* outer_;
};

/// For plans: measures one run, step by step, during its lifetime.
class MeteredRun {
 public:
  MeteredRun(int64_t planned, Executor& executor);
  ~MeteredRun();
  MeteredRun(const MeteredRun&) = delete;

  void before_step();
  /// `is_code`: the step ran user code. `unplanned`: bytes that are live because of user code from now on; negative
  /// if it freed some. `within`: bytes that the step itself took because of user code, whether they are live now or
  /// not.
  void after_step(bool is_code, int64_t unplanned, int64_t within = 0);

 private:
  PeakMeter* const meter_;
  Executor& executor_;
  const int64_t planned_, outer_peak_;
  int64_t most_ = 0, measured_ = 0, hook_bytes_ = 0, scratch_bytes_ = 0, before_ = 0, unplanned_ = 0;
};

}  // namespace retrograd
#pragma GCC visibility pop
