// compile_backward: an object used in place of loss.backward(). It captures the backward once per structure, caches
// the graph, and runs plans of it: one per set of sizes.
//
// A call recognises the structure that ran last by comparing (tracer/backward/trail.h), another one by its key
// (tracer/backward/key.h), and a plan by the sizes. Slots, leaves, hooks, numbers and cotangents are bound to the
// graph's inputs, new hook objects and other values included. An unknown structure is recorded by the driver into a
// Recorder. Its symbol uses and guards detect that a capture does not fit new sizes (two sizes that were equal, a
// comparison made by a rule): then there is one more capture, with a reason.
// With create_graph the captured graph is replayed into Taper over Runner, so that it is itself differentiable.
//
// Any number of threads may use one object, also from hooks that run inside one of its backwards. Two threads that
// encounter a new structure at the same time may both record it; one recording is kept. Limits: at most kStructures
// structures, kGraphs graphs of a structure (the oldest evicted first), kPlans plans of a graph; otherwise least
// recently used evicted first.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/autograd.h"
#include "ir/graph.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

struct BackwardOptions {
  /// Compares each run of a graph that contains unpacks of traceable pairs with one that calls them:
  /// Error(bad_argument) if their gradients differ. Costs two captures and two backwards a call. RETROGRAD_CHECK=pairs
  /// switches it on, too.
  bool check_pairs = false;
};

class CompiledBackward {
 public:
  static constexpr size_t kStructures = 256, kGraphs = 16;

  struct Stats {
    int64_t captures = 0;   // graphs recorded
    int64_t hits = 0;       // calls served by a captured graph
    int64_t misses = 0;     // calls that found none
    int64_t plans = 0;      // plans made, one per graph and set of sizes
    int64_t evictions = 0;  // structures and plans evicted
    int64_t nodes = 0;      // nodes of the last graph that ran
    int64_t unpacks = 0;    // unpack nodes run so far
    int64_t left = 0;       // runs that left their graph and continued eagerly
  };

  explicit CompiledBackward(const BackwardOptions& options = {});
  ~CompiledBackward();
  /// A moved-from object is empty, like a new one.
  CompiledBackward(CompiledBackward&&);
  CompiledBackward& operator=(CompiledBackward&&);

  /// loss.backward().
  void operator()(const Tensor& loss, SourceLocation where = SourceLocation::current());
  /// autograd::backward and autograd::grad, with the same parameters and errors.
  void backward(const Tensors& roots, const Tensors& cotangents = {}, std::optional<bool> retain_graph = {},
                bool create_graph = false, const std::optional<Tensors>& inputs = {},
                SourceLocation where = SourceLocation::current());
  Tensors grad(const Tensors& roots, const Tensors& inputs, const Tensors& cotangents = {},
               std::optional<bool> retain_graph = {}, bool create_graph = false, bool allow_unused = false,
               bool materialize_grads = false, SourceLocation where = SourceLocation::current());

  /// Whether a backward from these roots into all leaves would be served by a captured graph. Runs and counts nothing.
  bool knows(const Tensors& roots, const Tensors& cotangents = {},
             SourceLocation where = SourceLocation::current()) const;

  Stats stats() const;
  /// The graph of the last call; null before the first.
  std::shared_ptr<const ir::Graph> graph() const;
  /// Why the last capture was needed: "first call", or what changed, with the old and the new value.
  std::string last_capture_reason() const;
  /// What is cached and why: a line per structure, graph and plan, with counts of nodes, inputs, guards, and how
  /// often each ran.
  std::string explain() const;
  /// Forgets all graphs and counts. Current runs are not affected.
  void reset();

 private:
  friend class CompiledBackwardScope;
  struct State;
  std::shared_ptr<State> state_;
};

/// An empty cache of captured backwards.
inline CompiledBackward compile_backward(const BackwardOptions& options = {}) {
  return CompiledBackward(options);
}

/// During its lifetime, loss.backward(), autograd::backward and autograd::grad of this thread use the given object,
/// also inside hooks. Scopes nest: the innermost open scope counts. With nullptr, backwards are eager again.
class CompiledBackwardScope {
 public:
  explicit CompiledBackwardScope(CompiledBackward& compiled);
  explicit CompiledBackwardScope(std::nullptr_t);
  ~CompiledBackwardScope();
  CompiledBackwardScope(const CompiledBackwardScope&) = delete;

 private:
  struct Opened;
  std::unique_ptr<Opened> opened_;
};

}  // namespace retrograd
#pragma GCC visibility pop
