// PrefetchSchedule: the step of a plan before which a run begins to fetch a value that a later step unpacks.
//
// A fetch begins as many computing steps ahead as the pair requests (PrefetchOptions::nodes), but not before the
// payload exists, and only if its memory fits from then on: at none of the steps in between may the live memory
// exceed the peak of the whole run without prefetching plus the room that the pair grants. So without such room the
// peak is unchanged, and with 0 nodes each value is fetched where it is used. Values are scheduled in the order in
// which they are unpacked: one that is needed sooner gets the memory first. No fetch begins between steps that are
// started together, as a graph; such a graph counts as one computing step.
//
// It knows nothing of plans and executors: numbers in, steps out (tracer/plan/unpack_prefetch.cc runs it). Cost: for
// each value, the number of steps that it is fetched ahead.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hooks/prefetcher.h"

namespace retrograd::inline v0 {

/// A value that a step unpacks.
struct FetchedValue {
  size_t step, last;  // the step that unpacks it, and the last that needs its memory
  size_t earliest;    // the step before which its fetch may begin, at most `step`
  int64_t bytes;
  PrefetchOptions options;
};

class PrefetchSchedule {
 public:
  /// Steps [begin, end) that are started together.
  struct Together {
    size_t begin, end;
  };
  /// For each step: the most bytes live during it, excluding fetched values; and whether it computes something.
  PrefetchSchedule(std::vector<int64_t> live, std::vector<bool> computes,
                   std::span<const Together> together = {});

  /// Adds values, in the order of their steps. Returns for each the step before which its fetch begins; its own
  /// step: not early.
  std::vector<size_t> add(std::span<const FetchedValue> values);

 private:
  size_t begin_of(const FetchedValue& a, int64_t peak) const;

  std::vector<int64_t> unmoved_, live_;     // of each step, with each value from its unpack on; as planned
  std::vector<bool> computes_, is_inside_;  // inside: no fetch begins before it
};

}  // namespace retrograd
