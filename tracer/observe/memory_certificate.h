// MemoryCertificate: what a plan of a memory budget does, as plain data, so that a reader can check its peak without the
// solver that found it. It is of the graph that was fitted: of a function with a backward, of both (the joint graph).
//
// To check it, walk over `runs`. Each reads the values that are listed and makes others. A value is held from the run
// that makes it to the last run that reads it before it is made again, or to the end if `to_end`. During a run there
// are held: what it reads and what is read later, what it makes, values that a copy has no use for (`unused`), and
// scratch memory. A result does not count if it is computed in the memory of an operand that is read here for the last
// time: `overlays`, in their order, each value once. So one finds `held_bytes` of each run, and their maximum.
//
// `task` numbers what runs: first runs have the numbers 0, 1, 2 and so on; others are copies, and make the same bits
// again. No plan can hold less than one task needs by itself: the lower bound.
//
// Limits: bytes of values with a `contiguous` in them are an upper bound (docs/memory_budget.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/location.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

struct MemoryCertificate {
  /// Memory that runs make, with all views of it.
  struct Value {
    std::string_view op;
    SourceLocation where;
    int64_t bytes;
    bool to_end;
  };
  struct Overlay {
    int32_t result, operand;  // values
  };
  /// Of a group, the op is its last one. `reads`, `makes`, `unused`: values by number.
  struct Run {
    int32_t task;
    std::string_view op;
    SourceLocation where;
    std::vector<int32_t> reads, makes, unused;
    std::vector<Overlay> overlays;
    int64_t scratch_bytes;
    int64_t held_bytes;
  };
  std::vector<Value> values = {};
  std::vector<Run> runs = {};

  int64_t peak_bytes = 0;          // the most that is held during a run
  int32_t peak_run = -1;           // the first that holds it; -1: there are no runs
  std::vector<int32_t> held = {};  // values during that run: with its scratch memory they are peak_bytes
  int64_t lower_bound_bytes = 0;
  int32_t widest_run = -1;    // the first run of the task that needs so much
  int64_t besides_bytes = 0;  // held besides the graph from begin to end: cotangents, copies for replays

  /// All of it, a line for each run and for each value that is held at the peak.
  std::string text() const;
};

}  // namespace retrograd
#pragma GCC visibility pop
