// The problem of a memory budget, as plain data: tasks in a fixed order, blocks of memory that they make and read, and
// plans: in which tasks run again, so that blocks need not be kept in between.
//
//   Task     what runs as a whole: a node of a graph, or a group of nodes
//   Block    memory that a task makes: a value with its views
//   Run      one run of a task. A plan is a list of runs: every task once, in order, and copies in between
//   Measure  what a plan holds at most, and what its copies cost
//
// For reports there are also the bytes of each run, and the blocks of one.
//
// Semantics. A run makes blocks anew; what runs later reads those that were made last. A block is live from the run
// that makes it to the last run that reads it before it is made again. So a plan does not say what is dropped: what
// nobody reads any more is gone. Tasks that give the same each time they run are all that plans need to know of
// computing.
//
// There are no tensors and no graphs here: ir/passes/budget_tasks.h makes a problem of a graph, and a graph of a plan.
// Invariants: tasks are in an order in which they may run; a task lists each block once as operand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace retrograd::inline v0::ir::budget {

/// The number of a task or a block, as an index.
constexpr size_t at(int32_t number) { return static_cast<size_t>(number); }

struct Block {
  int64_t bytes = 0;
  bool to_end = false;  // live to the end once it is made
};

struct Task {
  /// Result number `result` may be computed in the memory of operand number `operand`, if that is read last here.
  struct Overlay {
    int32_t result, operand;
  };
  static constexpr int32_t kNever = -1;
  static constexpr size_t kMostResults = 64;  // of a task that runs again

  std::vector<int32_t> operands = {}, results = {};  // blocks
  std::vector<Overlay> overlays = {};
  int64_t scratch = 0;     // bytes that it needs while it runs
  double cost = 0;         // of a run
  int32_t until = kNever;  // it may run again before each task up to this one
  bool makes_all = true;   // a copy needs memory for all results, also for those that it is not run for
};

struct Problem {
  std::vector<Task> tasks;
  std::vector<Block> blocks;

  /// Of each block, the task that makes it; -1: none.
  std::vector<int32_t> makers() const;
};

struct Run {
  static constexpr uint64_t kAll = ~uint64_t{0};
  int32_t task;
  uint64_t results = kAll;  // a bit for each result: those that are made
  bool makes(size_t result) const { return result >= Task::kMostResults || (results >> result & 1) != 0; }
  bool operator==(const Run&) const = default;
};

/// Each task once.
std::vector<Run> plain_runs(const Problem& problem);

struct Measure {
  int64_t peak = 0;
  int32_t at = 0;   // the run during which it is reached
  double cost = 0;  // of all copies
  double over = 0;  // the bytes above `cap` of each run, added up
};

Measure measure(const Problem& problem, std::span<const Run> runs,
                int64_t cap = std::numeric_limits<int64_t>::max());

/// The plan without what no run reads of its copies.
std::vector<Run> without_unread(const Problem& problem, std::vector<Run> runs);

/// The bytes that are held during each run.
std::vector<int64_t> held_bytes(const Problem& problem, std::span<const Run> runs);

/// The blocks that are held during run number `run`: their bytes and its scratch memory are its held bytes. A result
/// that is computed in the memory of an operand is not among them. A block for which a copy needs memory, though it is
/// not run for it, is there besides the one that is read.
std::vector<int32_t> blocks_held(const Problem& problem, std::span<const Run> runs, int32_t run);

/// Of a task: the bytes of the results that may be computed in place.
int64_t bytes_in_place(const Problem& problem, const Task& task);

/// What a task needs by itself.
int64_t bytes_alone(const Problem& problem, const Task& task);

/// No plan can hold less: the most that one task needs by itself.
int64_t least_bytes(const Problem& problem);

}  // namespace retrograd::ir::budget
