// Profile: a timeline of the work on a thread while a ProfileScope was open there.
//
//   Run   a backward, or a compiled function, served by a plan, and its steps: node, time, live bytes of
//         tensor data afterwards.
//   Call  an eager call: of a forward, an optimizer, an eager backward.
//
// Nodes are linked to the forward: a graph tells for each node the record of the backward to which its rule belongs
// (ir::Origin::ordinal), a Run has the sequence numbers of these records, a Call that of the record that it made.
// chrome_trace() and pages (tracer/observe/page.h) use these links.
//
// Steps are seen by the plan itself, calls by an emitter on top of the thread's own. A run bypasses that emitter, so
// the computations of hooks are part of the hook's step. Without an open scope a run costs two loads of a
// thread-local pointer, and a step two tests of it.
//
// Limits: one thread at a time. Scopes nest, the innermost open one collects. A backward that is replayed node by
// node (create_graph, forward mode) has no steps, one that leaves its graph has steps up to that point. A profile
// keeps the graphs of its runs.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/emitter.h"
#include "ir/graph.h"
#include "tracer/observe/work.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

namespace detail {
struct Profiling;
}

class Profile {
 public:
  static constexpr uint64_t kNoRecord = ~uint64_t{0};

  /// Times are nanoseconds of the steady clock; an end of 0 means not yet ended. A node that the plan folds into the
  /// next one has no step.
  struct Step {
    uint32_t node;  // in the run's graph
    bool frees;     // not the node's own work: empties slots or registers that are no longer needed
    int64_t begin, end;
    int64_t live_bytes;  // of tensor data in the process, afterwards
  };
  struct ForwardRecord {
    uint64_t seq;
    std::string_view op;
    SourceLocation where;
  };
  struct Run {
    std::shared_ptr<const ir::Graph> graph;
    /// The records that the backward reached, most recent first: Origin::ordinal is an index. Empty for a compiled
    /// function.
    std::vector<ForwardRecord> records;
    std::vector<Step> steps;
    int64_t begin, end;
    int64_t live_bytes;           // before it
    std::vector<Number> numbers;  // of the graph's expressions: the values of its symbols in this run

    /// The nodes that step i ran: its own, or all of a group that ran as one step (ir/passes/fuse.h), of which
    /// its own is the last.
    std::vector<uint32_t> nodes_of(size_t i) const;
  };
  struct Call {
    std::string_view op;
    SourceLocation where;
    uint64_t record;  // the sequence number of the record that it made, or kNoRecord
    int64_t begin, end;
    int64_t live_bytes;  // afterwards
    Work work;
  };

  const std::vector<Run>& runs() const { return runs_; }
  const std::vector<Call>& calls() const { return calls_; }
  void clear();

  /// JSON in Chrome's trace event format, for chrome://tracing and ui.perfetto.dev. Steps and calls are slices, live
  /// bytes a counter, and an arrow leads from a forward call to each node of its derivative. Records whose call was
  /// not seen are marks on a separate track, in order and right before the backward: their position is not a time.
  std::string chrome_trace() const;
  /// A line for each kind of call and node: count, own time, share, and work rates (tracer/observe/work.h); the
  /// longest first, and a sum.
  std::string table() const;
  /// Live bytes over time, with the backwards that plans ran, as a self-contained SVG.
  std::string memory_svg() const;

 private:
  friend struct detail::Profiling;
  std::vector<Run> runs_;
  std::vector<Call> calls_;
};

/// While open, all work on this thread is added to `profile`.
class ProfileScope {
 public:
  explicit ProfileScope(Profile& profile);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;

 private:
  struct Opened;
  std::unique_ptr<Opened> opened_;
};

/// Records the rest of the block as a call named `name`, which must outlive the profile, in the innermost open
/// profile: for work outside ops, such as the passes of an optimizer. Calls within it are also recorded.
class ProfileRegion {
 public:
  explicit ProfileRegion(std::string_view name, SourceLocation where = SourceLocation::current());
  ~ProfileRegion();
  ProfileRegion(const ProfileRegion&) = delete;

 private:
  std::string_view name_;
  SourceLocation where_;
  detail::Profiling* profiling_;
  int64_t begin_;
};

// For the tracer.

/// Emitter::current(), or the emitter below it if it belongs to open profiles: used to check whether code runs
/// eagerly.
Emitter& emitter_below_profiles();

namespace detail {
struct ProfilingHere {
  RefPtr<Emitter::Layer> kept;
  Profiling* profiling;
};
/// The data of the innermost open scope of this thread; null without one.
inline Profiling* profiling() {
  const ProfilingHere* here = OpenScopes<ProfilingHere>::innermost();
  return here ? here->profiling : nullptr;
}
}  // namespace detail

/// While open, steps of this thread belong to a run of `graph`, which `owner` keeps alive. `records`: by
/// place in the walk. `numbers`: the values of the graph's expressions.
class ProfiledRun {
 public:
  template <class Owner>
  ProfiledRun(const std::shared_ptr<Owner>& owner, const ir::Graph& graph, std::span<Record* const> records,
              std::span<const Number> numbers)
      : profiling_(detail::profiling()) {
    if (profiling_) [[unlikely]]
      begin({owner, &graph}, records, numbers);
  }
  ~ProfiledRun() {
    if (profiling_) [[unlikely]]
      end();
  }
  ProfiledRun(const ProfiledRun&) = delete;

 private:
  void begin(std::shared_ptr<const ir::Graph> graph, std::span<Record* const> records,
             std::span<const Number> numbers);
  void end();

  detail::Profiling* const profiling_;
  size_t run_ = 0, outer_run_ = 0;
  RefPtr<Emitter::Layer> kept_;
  std::optional<Emitter::Scope> below_;
};

/// One step, from here to the end of the block. `profiling`: detail::profiling() when the run began.
class ProfiledStep {
 public:
  ProfiledStep(detail::Profiling* profiling, uint32_t node, bool frees) : profiling_(profiling) {
    if (profiling_) [[unlikely]]
      begin(node, frees);
  }
  ~ProfiledStep() {
    if (profiling_) [[unlikely]]
      end();
  }
  ProfiledStep(const ProfiledStep&) = delete;

 private:
  void begin(uint32_t node, bool frees);
  void end();

  detail::Profiling* const profiling_;
  size_t run_ = 0, step_ = 0;
};

}  // namespace retrograd
#pragma GCC visibility pop
