// compile_backward: an object used in place of loss.backward(). It captures the backward once per structure, caches the graph, and runs
// plans of it: one per set of sizes.
//
// A call walks the reachable tape once, folding the structure into a key (engine/walk.h, tracer/key.h) and the sizes into another. A known
// structure is run from its plan: slots, leaves, hooks, numbers and cotangents are bound to the graph's inputs, new hook objects and other
// values included. An unknown one is recorded by the driver into a Recorder. What makes a capture unfit for new sizes (two sizes that were
// equal, a comparison that a rule made) is found by its symbol uses and guards: then there is one more capture, and a reason is given.
// With create_graph the captured graph is replayed into Taper over Runner, so that it is itself differentiable.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/autograd.h"
#include "ir/graph.h"

namespace retrograd {

class CompiledBackward {
 public:
  struct Stats {
    int64_t captures = 0;   // graphs recorded
    int64_t hits = 0;       // calls served by a captured graph
    int64_t plans = 0;      // plans made, one per graph and set of sizes
    int64_t nodes = 0;      // nodes of the last graph that ran
    int64_t unpacks = 0;    // unpack nodes run so far
  };

  CompiledBackward();
  ~CompiledBackward();
  CompiledBackward(CompiledBackward&&) noexcept;
  CompiledBackward& operator=(CompiledBackward&&) noexcept;

  /// loss.backward().
  void operator()(const Tensor& loss, SourceLocation where = SourceLocation::current());
  /// autograd::backward and autograd::grad, with the same parameters and errors.
  void backward(const Tensors& roots, const Tensors& cotangents = {}, std::optional<bool> retain_graph = {}, bool create_graph = false,
                const std::optional<Tensors>& inputs = {}, SourceLocation where = SourceLocation::current());
  Tensors grad(const Tensors& roots, const Tensors& inputs, const Tensors& cotangents = {}, std::optional<bool> retain_graph = {},
               bool create_graph = false, bool allow_unused = false, SourceLocation where = SourceLocation::current());

  Stats stats() const;
  /// The graph of the last call; null before the first.
  const ir::Graph* graph() const;
  /// Why the last capture was needed: "first call", "new structure", or which size or guard did not fit.
  std::string last_capture_reason() const;
  /// Forgets all graphs.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// An empty cache of captured backwards.
inline CompiledBackward compile_backward() { return CompiledBackward(); }

}  // namespace retrograd
