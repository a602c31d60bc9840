// PeakWatch: are plans' peaks what was said before the runs?
//
// While a PeakWatch lives, each run of a plan on its thread first forecasts the most bytes of tensor data that will be live during it
// (Plan::Run::outlook), then notes how many were, and both go into the report. Counted is all in the memory of the plan's executor
// (Executor::live_bytes): on the CPU all that memory::stats counts in the process, on a device what its allocator gave out. That is tensors,
// arenas and, on the CPU, temporary memory of kernels. What a device's kernels take of that while they are launched has a line of its own: it
// comes to the plan's bytes, in the steps that need it. What code of the user's allocates, or holds on to, inside
// a run, such as a pack hook, nobody can foresee: it has a line of its own, and is part of neither of the two figures. A plan is taken to let
// go of what it shows to such code as if nobody else held it.
//
// Limits: other threads that allocate meanwhile, and other runs that begin inside hooks, are counted as if they were this run's. Runs inside
// runs are not watched. Without an open watch a run costs one test of a thread-local pointer.
#pragma once

#include <cstdint>
#include <string>

#include "engine/executor.h"

namespace retrograd {

struct PeakReport {
  int64_t runs = 0;
  int64_t differing = 0;       // runs whose measured peak is not the planned one
  int64_t planned_bytes = 0;   // of the run with the highest peak
  int64_t measured_bytes = 0;  // of the same
  int64_t hook_bytes = 0;      // the most that were live in a run because of code of the user's
  int64_t scratch_bytes = 0;   // the most that a device's kernels took for themselves in a step

  /// What both have seen.
  void add(const PeakReport& other);
};

class PeakWatch {
 public:
  PeakWatch();
  ~PeakWatch();
  PeakWatch(const PeakWatch&) = delete;

  const PeakReport& report() const { return report_; }
  /// Notes a run.
  void add(int64_t planned, int64_t measured, int64_t hook_bytes, int64_t scratch_bytes);
  /// The innermost one of this thread; null: none, or a run is being watched.
  static PeakWatch* current();

 private:
  friend class WatchedRun;
  PeakReport report_;
  PeakWatch* outer_;
};

/// For plans: measures one run, step by step, while it lives.
class WatchedRun {
 public:
  WatchedRun(int64_t planned, Executor& executor);
  ~WatchedRun();
  WatchedRun(const WatchedRun&) = delete;

  void before_step();
  /// `is_code`: what the step ran was code of the user's. `beside`: bytes that are live because of such code from now on; negative if it
  /// freed some. `within`: bytes that the step itself took because of such code, whether they are live now or not.
  void after_step(bool is_code, int64_t beside, int64_t within = 0);

 private:
  PeakWatch* const watch_;
  Executor& executor_;
  const int64_t planned_, outer_peak_;
  int64_t most_ = 0, measured_ = 0, hook_bytes_ = 0, scratch_bytes_ = 0, before_ = 0, beside_ = 0;
};

}  // namespace retrograd
