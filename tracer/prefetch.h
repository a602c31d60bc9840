// PrefetchSchedule: before which step of a plan a run begins to bring back a value that a later step unpacks.
//
// A value is begun so many steps that compute ahead as its pair asks for (PrefetchOptions::nodes), but not
// before its payload is there, and only where its memory has room from then on: at none of the steps in
// between may more be live than at most in the whole run without any prefetching, and what room the pair
// gives. So without room the peak is the same, and with 0 nodes each value is begun where it is used. Values
// are seen to in the order in which they are unpacked: one that is needed sooner has the room. Nothing is
// begun between steps that are started together, as a graph; such a graph counts as one step that computes.
//
// It knows nothing of plans and executors: figures in, steps out (tracer/plan_prefetch.cc runs it). Cost: for each value the steps that it is
// begun ahead.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hooks/prefetch.h"

namespace retrograd {

/// A value that a step unpacks.
struct Arrival {
  size_t step, last;  // by which it is unpacked, and which needs its memory last
  size_t earliest;    // before which it may be begun, at most `step`
  int64_t bytes;
  PrefetchOptions options;
};

class PrefetchSchedule {
 public:
  /// Steps [begin, end) that are started together.
  struct Together {
    size_t begin, end;
  };
  /// Of each step: the most bytes that are live during it, all arrivals aside; and whether it computes something.
  PrefetchSchedule(std::vector<int64_t> live, std::vector<bool> computes,
                   std::span<const Together> together = {});

  /// Takes up arrivals, in the order of their steps. Of each, the step before which it is begun; its own: not early.
  std::vector<size_t> add(std::span<const Arrival> arrivals);

 private:
  size_t begin_of(const Arrival& a, int64_t peak) const;

  std::vector<int64_t> unmoved_, live_;     // of each step, with each value from its unpack on; as planned
  std::vector<bool> computes_, is_inside_;  // inside: nothing is begun before it
};

}  // namespace retrograd
