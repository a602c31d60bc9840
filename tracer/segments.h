// Segments: which steps of a plan are recorded as a graph of launches and started together.
//
//   step     launch (work of the executor), view (a layout, on the host), host (code that runs on the host, or waits for the device)
//   segment  consecutive launches and views, with nothing of the host between them
//   cut      a step of the host, with the reason why no segment goes on over it
//
// A started graph does on the device what its steps do, but nothing on the host. What the steps behind it find in the registers is restored from
// the lists that a Segment has: registers with memory of their own, views that somebody looks at later, registers that are done with.
//
// Nothing here knows of devices: the steps say what they are. A segment of one launch is not worth a graph.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace retrograd {

/// A step as segments see it. Registers: -1 is none.
struct SegmentStep {
  enum class Kind : uint8_t { launch, view, host };
  Kind kind;
  std::string_view name = {};  // of its op
  std::string_view why = {};   // host: what the host does there
  std::span<const int32_t> operands = {}, results = {}, dying = {};
  std::vector<bool> into =
      {};  // of each result: it is computed into the memory that its register holds; none: no result is
};

struct Segment {
  struct Read {
    int32_t at;
    bool is_written;  // a result is computed into its memory
  };
  uint32_t begin = 0, end = 0;  // steps
  int32_t launches = 0;
  bool is_worth_a_graph() const { return launches > 1; }
  std::vector<Read> reads;  // registers that hold what was there before the segment, those of the arena aside
  std::vector<int32_t> memory;  // registers whose own cells it gives memory
  std::vector<uint32_t>
      views;  // steps: views that are used behind the segment, and those that they are views of
  std::vector<int32_t> dead;      // of `memory` and of the results of `views`: not used behind it
  std::vector<int32_t> drops;     // of `reads`: used here for the last time
  std::vector<int32_t> replaced;  // the same, of registers that belong to values of the segment from then on
};

struct Cut {
  uint32_t step;
  std::string_view name, why;
};

struct Segments {
  std::vector<Segment> list;
  std::vector<Cut> cuts;
};

/// What became of the segments of plans.
struct LaunchStats {
  int64_t segments = 0;        // of the plan that ran last
  int64_t graph_launches = 0;  // segments started as a graph
  int64_t launches = 0;        // steps launched one by one
  int64_t recordings = 0;      // segments recorded for the first time
  int64_t updates = 0;   // segments recorded again: memory lay elsewhere, or numbers of one launch parted
  int64_t copies = 0;    // values copied into the memory that a graph reads, or out of what it writes
  int64_t given_up = 0;  // segments that are launched one by one, since recording or starting them failed

  /// Adds counts; `segments` stays.
  void add(const LaunchStats& o);
};

/// Registers below `arena` have fixed memory.
Segments find_segments(std::span<const SegmentStep> steps, int32_t arena);

/// A line for each segment and each cut, in order:
///   segment 0: 12 launches as a graph
///   cut at pack: it calls code of the user's
///   segment 1: 1 launch, which is not worth a graph
/// `notes`: of each segment, why it is no graph though it could be; none or empty: it is one.
std::string to_text(const Segments& segments, std::span<const std::string> notes = {});

}  // namespace retrograd
