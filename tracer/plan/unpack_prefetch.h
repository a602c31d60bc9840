// UnpackPrefetcher: begins to fetch, ahead of their unpacks, the values that unpack hooks read from elsewhere. See
// hooks/prefetcher.h for the options of a pair, tracer/plan/prefetch_schedule.h for when; start reading at before().
//
// The plan knows which steps call an unpack hook; the run knows the pairs and the payloads. In a captured backward,
// and in the backward of a compiled function, the payloads exist when the run begins. A step that is recorded whole
// makes them itself: values are scheduled in **batches**, each after its last payload has been packed and before its
// first value is unpacked.
// In a step that runs as graphs of launches, fetches begin between the graphs.
//
// Only the fetch begins early: errors, version checks and the order of hooks stay at the unpacks. If an exception
// ends the run, values fetched but not unpacked are dropped with the run, and their payloads are unchanged. If memory
// is short, no further fetch begins.
#pragma once

#include <memory>

#include "tracer/plan/prefetch_schedule.h"
#include "tracer/plan/run.h"

namespace retrograd::inline v0 {

class UnpackPrefetcher {
 public:
  /// Null if no pair requests it.
  static std::unique_ptr<UnpackPrefetcher> of(const PlanRun& run);
  ~UnpackPrefetcher();
  bool is_due(size_t step) const { return step >= due_; }
  /// Begins the fetches scheduled before a step.
  void before(size_t step);

 private:
  struct Waiting {
    UnpackStep at;
    size_t last;  // step that needs its memory
  };
  // A slot outside a tape lives as long as the opaque value that owns it.
  struct Payload {
    Slot* slot;
    std::weak_ptr<Slot> owned;
    Packed* packed() const;
  };
  struct Beginning {
    size_t step;
    Payload payload;
  };
  UnpackPrefetcher(const PlanRun& run, std::vector<UnpackStep> unpacks);
  static Payload payload_of(const PlanRun& run, const UnpackStep& unpack);
  static Prefetcher* prefetcher_of(const PlanRun& run, const UnpackStep& unpack);
  std::span<const Waiting> next_batch() const;
  void plan_next();
  void find_due();

  const PlanRun& run_;
  std::vector<Waiting> waiting_;  // in order of steps
  size_t planned_ = 0;            // of them
  PrefetchSchedule schedule_;
  std::vector<Beginning> beginnings_;  // in order of steps
  size_t begun_ = 0;                   // of them
  size_t due_ = 0;
};

}  // namespace retrograd
