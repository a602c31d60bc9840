// Recordings: the graphs of launches that a frame has of the segments of its plan, and the memory that they are bound to. For tracer/plan*.cc
// only; what happens with them: tracer/plan_graphs.cc.
//
//   arena     kept by the frame
//   memory    of values that others may see: kept per register. Where somebody still holds what an earlier run gave, new memory is taken, and
//             from then on a copy is given in its place.
//   reads     values from outside: found at the address of the recording, or, where one has moved twice, copied into a slot of its own
//   numbers   the attributes that change from run to run, as they were recorded: of launches that do not find them by themselves
//   cuts      how a step of several updates is cut into launches, which depends on numbers (ir/passes/join_updates.h)
// Where an address or a cut is another one after all, the segment is recorded again; after kMostMoves times in a row for addresses it is given up.
#pragma once

#include "tracer/plan_run.h"

namespace retrograd {

/// A launch with numbers of the run, and its cells, on memory that they do not hold.
struct Plan::RecordedLaunch {
  size_t step;
  std::vector<RefPtr<TensorImpl>> operands = {}, results = {};
};

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
    Updates(const Plan& plan, const Step& s, const Frame& frame);
    /// Than when they were recorded.
    bool are_cut_otherwise(const Frame& frame) const;

   private:
    // Whether the numbers of update n are others than those of the one before it.
    bool is_cut(size_t n, const Frame& frame) const;
    std::vector<std::span<const Patch>> numbers_;  // of each: where in the frame's attributes
    std::vector<bool> cuts_;                       // of each but the first, as recorded
  };
  struct Recorded {
    std::unique_ptr<LaunchGraph> graph;                 // null: not recorded yet
    std::vector<Seen> reads;                            // parallel to Segment::reads
    std::vector<const void*> memory;                    // parallel to Segment::memory
    std::vector<std::vector<RecordedLaunch>> launches;  // of each part; none where its numbers do not change
    std::vector<Updates> updates;                       // its steps of several updates
    int moves = 0;                                      // recordings in a row for other addresses
    bool is_given_up = false;
  };

  explicit Recordings(const Plan& plan);

  std::vector<Recorded> segments;
  std::vector<RefPtr<Storage>> memory;  // of each register; null: none so far
  std::vector<bool> is_copied;          // of each register: a copy is given in its place
  std::vector<std::byte> numbers;       // the frame's attributes as they were recorded
  bool is_warm = false;                 // a run has gone through all steps
  LaunchStats stats;                    // of the present run
};

}  // namespace retrograd
