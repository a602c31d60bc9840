// Recordings: the graphs of launches that a frame has of the segments of its plan, and the memory that they are bound to. For tracer/plan*.cc
// only; what happens with them: tracer/plan_graphs.cc.
//
//   arena     kept by the frame
//   memory    of values that others may see: kept per register. Where somebody still holds what an earlier run gave, new memory is taken, and
//             from then on a copy is given in its place.
//   reads     values from outside: found at the address of the recording, or, where one has moved twice, copied into a slot of its own
//   cuts      how a step of several updates is cut into launches: where their numbers have been others (ir/passes/join_updates.h)
// Where an address is another one after all, or numbers of one launch part, the segment is recorded again; after kMostMoves times in a row for
// addresses it is given up. What has parted once stays apart, so numbers make no more recordings than a step has updates.
#pragma once

#include "tracer/plan_run.h"

namespace retrograd {

struct Plan::Recordings {
  static constexpr int kMostMoves = 4;  // of a segment, in a row
  static constexpr int kMovesToCopy = 2;

  /// A value from outside.
  struct Seen {
    const void* data = nullptr;  // null: not seen yet
    int moves = 0;
    std::vector<int64_t> strides;
    RefPtr<TensorImpl>
        slot;  // what the graph reads in its place, laid out alike; null: it is read where it is
  };
  /// A step of several updates of an optimizer, and how its numbers cut it into launches.
  class Updates {
   public:
    Updates(const Plan& plan, const Step& s);
    /// Cuts where numbers are others now, besides where they have been so.
    void cut(const Frame& frame);
    /// Whether there would be a cut where none is.
    bool have_parted(const Frame& frame) const;

   private:
    // Whether the numbers of update n are others than those of the one before it.
    bool is_parted(size_t n, const Frame& frame) const;
    std::vector<std::span<const Patch>> numbers_;  // of each: where in the frame's attributes
    std::vector<bool> is_cut_;                     // of each: from the one before it
  };
  struct Recorded {
    std::unique_ptr<LaunchGraph> graph;  // null: not recorded yet
    std::vector<Seen> reads;             // parallel to Segment::reads
    std::vector<const void*> memory;     // parallel to Segment::memory
    std::vector<Updates> updates;        // its steps of several updates; none before it is recorded
    int moves = 0;                       // recordings in a row for other addresses
    bool is_given_up = false;
  };

  explicit Recordings(const Plan& plan);

  std::vector<Recorded> segments;
  std::vector<RefPtr<Storage>> memory;  // of each register; null: none so far
  std::vector<bool> is_copied;          // of each register: a copy is given in its place
  bool is_warm = false;                 // a run has gone through all steps
  LaunchStats stats;                    // of the present run
};

}  // namespace retrograd
