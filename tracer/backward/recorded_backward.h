// RecordedBackward: a backward as a graph, and the bindings of the graph to a run of that backward.
#pragma once

#include <memory>

#include "tracer/backward/recorder.h"
#include "tracer/backward/trail.h"
#include "tracer/plan/plan.h"

namespace retrograd::inline v0 {

struct RecordedBackward {
  ir::Graph graph;
  std::vector<Source> sources;       // of its inputs
  std::vector<RuleRun> rules;        // in order
  DriveLog log;                      // empty unless the graph calls user code
  std::vector<uint32_t> recomputed;  // regions whose calls are in the graph,
  int64_t calls_recomputed = 0;      // and how many

  /// Whether it reads tensors of payloads, which only plans can.
  bool has_parts() const;
  /// Takes the recording of the recorder into `graph`.
  void take(Recorder& recorder);
  /// `values`: of all expressions of the graph, for one set of sizes.
  std::unique_ptr<Plan> plan(std::span<const Number> values, Executor& executor) const;

  /// Runs a plan of the graph. If user code changes the rest of the backward (a hook added to a later record, a
  /// gradient that is undefined this time), the run leaves the graph and continues eagerly, with the same result.
  /// Unless request.retain_graph, each slot is emptied when it is unpacked, and slots that are not unpacked, when
  /// their record is done. `numbers`: values of all expressions for this run.
  struct Outcome {
    Tensors gradients;
    bool left;
  };
  Outcome run(const Plan& plan, const BackwardRequest& request, const Reached& reached, const Trail& trail,
              std::span<const Number> numbers) const;
  /// The bindings of the inputs for a replay of the graph.
  std::vector<ir::Binding> bind(const BackwardRequest& request, const Reached& reached) const;
  /// Empties the slots of the records whose rules are within the first `ran` nodes: needed after a replay, which does
  /// not.
  void release_slots(const Reached& reached, size_t ran) const;
};

}  // namespace retrograd
