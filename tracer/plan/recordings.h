// Recordings: the graphs of launches (CUDA graphs) of a frame for the segments of its plan, and the memory that they
// are bound to. GraphRunner makes and starts them (tracer/plan/graph_runner.h).
//
//   arena     kept by the frame
//   memory    of values that others may see: kept per register. If the result of an earlier run is still held
//             elsewhere, new memory is taken, and from then on a copy is returned instead.
//   reads     values from outside: read at the address of the recording, or, if one has moved twice, copied into a
//             staging cell
//   updates   how a step of several updates is cut into launches: between updates whose numbers have differed
//             (ir/passes/join_updates.h)
// If an address has changed after all, or numbers of one launch now differ, the segment is recorded again; after
// kMostMoves times in a row for addresses, graphs are given up for it. Updates separated once stay separate, so
// numbers cause at most as many recordings as a step has updates.
#pragma once

#include "tracer/plan/frame.h"

namespace retrograd::inline v0 {

struct Recordings {
  static constexpr int kMostMoves = 4;  // of a segment, in a row
  static constexpr int kMovesToCopy = 2;

  /// A value from outside.
  struct Read {
    const void* data = nullptr;  // null: not seen yet
    int moves = 0;
    std::vector<int64_t> strides;
    RefPtr<TensorImpl> staging;  // read by the graph instead, with the same layout; null: the value is read in place
  };
  /// A step of several optimizer updates, and its cuts into launches by their numbers.
  class Updates {
   public:
    Updates(const Program& program, const Step& s);
    /// Adds cuts where numbers differ now.
    void cut(const Frame& frame);
    /// Whether a new cut is needed.
    bool have_parted(const Frame& frame) const;

   private:
    // Whether the numbers of update n differ from those of the previous update.
    bool is_parted(size_t n, const Frame& frame) const;
    std::vector<std::span<const AttrTable::Patch>> numbers_;  // of each update: the places in the frame's attributes
    std::vector<bool> is_cut_;                                // of each update: from the previous one
  };
  struct Recorded {
    std::unique_ptr<LaunchGraph> graph;  // null: not recorded yet
    std::vector<Read> reads;             // parallel to Segment::reads
    std::vector<const void*> memory;     // parallel to Segment::memory
    std::vector<Updates> updates;        // its steps of several updates; none before it is recorded
    int moves = 0;                       // consecutive recordings because of changed addresses
    bool is_given_up = false;
  };

  explicit Recordings(const Program& program);

  std::vector<Recorded> segments;
  std::vector<RefPtr<Storage>> memory;  // of each register; null: none so far
  std::vector<bool> is_copied;          // of each register: a copy is returned instead
  bool is_warm = false;                 // a run has executed all steps
  LaunchStats stats;                    // of the current run
};

}  // namespace retrograd
