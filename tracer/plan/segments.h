// Segments: the steps of a plan that are recorded as a graph of launches (a CUDA graph) and started together.
//
//   step     launch (work of the executor), view (a layout, on the host), host (code that runs on the host, or waits
//            for the device)
//   segment  consecutive launches and views, without host steps between them
//   cut      a step of the host, with the reason why no segment extends over it
//
// A started graph does the device work of its steps, but nothing on the host. The registers that later steps read are
// restored from the lists of a Segment: registers with their own memory, views that are used later, registers that
// are no longer needed.
//
// This part does not depend on devices: each step states its kind. A segment of one launch is not worth a graph.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// A step as segments see it. Registers: -1 is none.
struct SegmentStep {
  enum class Kind : uint8_t { launch, view, host };
  Kind kind;
  std::string_view name = {};  // of its op
  std::string_view why = {};   // host: the work of the host
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
  std::vector<Read> reads;  // registers whose values are from before the segment, except those of the arena
  std::vector<int32_t> memory;  // registers whose own cells get memory in the segment
  std::vector<uint32_t>
      views;  // steps: views that are used after the segment, and those that they are views of
  std::vector<int32_t> dead;      // of `memory` and of the results of `views`: not used after it
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

/// Counts for the segments of plans.
struct LaunchStats {
  int64_t segments = 0;        // of the plan that ran last
  int64_t graph_launches = 0;  // segments started as a graph
  int64_t launches = 0;        // steps launched one by one
  int64_t recordings = 0;      // segments recorded for the first time
  int64_t updates = 0;   // segments recorded again: addresses changed, or numbers of one launch now differ
  int64_t copies = 0;    // values copied into the memory that a graph reads, or out of what it writes
  int64_t given_up = 0;  // segments that are launched one by one, since recording or starting them failed

  /// Adds counts; `segments` stays.
  void add(const LaunchStats& o);
};

/// Registers below `arena` have fixed memory.
Segments find_segments(std::span<const SegmentStep> steps, int32_t arena);

/// A line for each segment and each cut, in order:
///   segment 0: 12 launches as a graph
///   cut at pack: it calls user code
///   segment 1: 1 launch, which is not worth a graph
/// `notes`: for each segment, why it is not a graph though it could be; none or empty: it is a graph.
std::string to_text(const Segments& segments, std::span<const std::string> notes = {});

}  // namespace retrograd
#pragma GCC visibility pop
