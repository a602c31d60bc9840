// The backward driver, written once against Emitter: into Taper over Runner it is the eager backward, into a Recorder it is the trace.
//
// For each record of the walk: tensor hooks of its results, retain_grad, pre-hooks, the rule (whose unpacks run at first use), the unpacks
// of hooked slots that the rule did not ask for, post-hooks, then the gradients go onward and the slots are released. After it the leaves
// whose last consumer it was: tensor hooks, accumulation, post-accumulate hooks. docs/hooks.md has the total order.
#pragma once

#include <optional>

#include "engine/walk.h"

namespace retrograd {

struct BackwardRequest {
  Tensors roots, cotangents;      // defined and checked
  std::optional<Tensors> inputs;  // absent: all leaves
  bool accumulate = true;         // into .grad; else the gradients of `inputs` are returned
  bool retain_graph = false;
  bool create_graph = false;
};

/// Checks the roots and fills in missing cotangents (ones).
BackwardRequest make_request(const Tensors& roots, const Tensors& cotangents, const std::optional<Tensors>& inputs, bool accumulate,
                             std::optional<bool> retain_graph, bool create_graph, SourceLocation where);

/// Runs the backward into `emitter`. Returns the gradients of request.inputs when they are not accumulated.
Tensors run_backward(const BackwardRequest& request, Walk& walk, Emitter& emitter);

/// The backward that runs on this thread: what multi-grad hooks ask. Nested backwards stack.
class CurrentBackward {
 public:
  explicit CurrentBackward(Walk& walk);
  ~CurrentBackward();
  CurrentBackward(const CurrentBackward&) = delete;
  static CurrentBackward* innermost();
  uint64_t id() const { return id_; }
  Walk& walk() { return walk_; }

 private:
  Walk& walk_;
  uint64_t id_;
  CurrentBackward* outer_;
};

/// Throws unless each gradient of a grad() call is defined or may be missing.
void check_unused(const Tensors& gradients, bool allow_unused, SourceLocation where);

}  // namespace retrograd
