// The backward driver, written once against Emitter: into Taper over Runner it is the eager backward, into a Recorder it is the trace.
//
// For each record of the walk: tensor hooks of its results, retain_grad, pre-hooks, the rule (whose unpacks run at first use), the unpacks
// of hooked slots that the rule did not ask for; the slots are released, post-hooks run, the gradients go onward. After it the leaves whose
// last consumer it was: tensor hooks, accumulation, post-accumulate hooks. The lists of hooks are read when a record or leaf begins, that
// of post-hooks when the rule is done. docs/hooks.md has the total order.
// Limits: how deep backwards inside hooks nest is that of engine/nesting.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "engine/nesting.h"
#include "engine/open_scopes.h"
#include "engine/walk.h"

namespace retrograd {

struct BackwardRequest {
  Tensors roots, cotangents;     // defined and checked
  std::vector<Edge> root_edges;  // where the cotangents go; they keep the graph alive
  bool to_inputs = false;        // to `input_edges` only; else to all leaves
  std::vector<Edge> input_edges;
  bool accumulate = true;  // into .grad; else the gradients of the inputs are returned
  bool retain_graph = false;
  bool create_graph = false;
  RefPtr<SavedTensorHooks> pair;  // create_graph: the default one, which packs what the backward itself saves
  SourceLocation where = {};      // of the user's call

  Walk walk() const { return Walk(root_edges, to_inputs ? &input_edges : nullptr, accumulate); }
};

/// Checks the roots and fills in missing cotangents (ones).
BackwardRequest make_request(const Tensors& roots, const Tensors& cotangents,
                             const std::optional<Tensors>& inputs, bool accumulate,
                             std::optional<bool> retain_graph, bool create_graph, SourceLocation where);

class DriverObserver;

/// Runs the backward into the current emitter, under anomaly mode if that is on; as part of the recording, where one is made.
Tensors run_backward(const BackwardRequest& request);
/// Runs the backward into `emitter`. Returns the gradients of the inputs when they are not accumulated.
Tensors run_backward(const BackwardRequest& request, Walk& walk, Emitter& emitter,
                     DriverObserver* observer = nullptr);

/// A backward that was begun elsewhere, by a captured graph, and stopped between two records or after a rule.
struct BackwardState {
  Tensors grads;           // what has arrived, by the walk's number; of what is done: undefined
  Tensors captured;        // of the inputs, so far
  size_t next_record = 0;  // place in the order
  size_t next_leaf = 0;
  bool rule_is_done = false;  // of the next record: `given` is what it gave
  Tensors given;
};
/// Goes on from `state` eagerly, to the end.
Tensors resume_backward(const BackwardRequest& request, Walk& walk, BackwardState state);

/// Told what the driver does with gradients: a Recorder notes it, so that a run of the graph can be left for resume_backward().
class DriverObserver {
 public:
  virtual void record_begins(uint32_t place) = 0;
  /// Before the post-hooks, which see both lists.
  virtual void rule_gave(uint32_t place, std::span<const Tensor> grads, std::span<const Tensor> given) = 0;
  virtual void leaf_begins(uint32_t index) = 0;
  virtual void arrived(uint32_t grad, const Tensor& sum) = 0;
  virtual void captured(uint32_t input, const Tensor& grad) = 0;

 protected:
  ~DriverObserver() = default;
};
/// Records the backward into `recorder`. Rules, and code of the user's that is recorded, emit into a Taper over it: they may differentiate.
Tensors record_backward(const BackwardRequest& request, Walk& walk, Emitter& recorder,
                        DriverObserver* observer = nullptr);

/// What autograd::backward and autograd::grad hand their requests to while a scope is open on this thread: how tracing takes them over.
class BackwardRunner {
 public:
  using Scopes = OpenScopes<std::shared_ptr<BackwardRunner>>;
  virtual Tensors run(const BackwardRequest& request) = 0;
  /// Of the innermost scope. Null: the driver into the current emitter.
  static std::shared_ptr<BackwardRunner> current() {
    const std::shared_ptr<BackwardRunner>* runner = Scopes::innermost();
    return runner ? *runner : nullptr;
  }

 protected:
  ~BackwardRunner() = default;
};

/// The backward that runs on this thread: what multi-grad hooks and callbacks ask. Nested backwards stack.
class CurrentBackward {
 public:
  CurrentBackward(const BackwardRequest& request, Walk& walk)
      : CurrentBackward(&request, &walk, nullptr, false) {}
  /// That of a recorded function, which a run goes through. `is_part`: of the one that runs already, to which it adds what it reaches.
  CurrentBackward(Reach& reach, bool is_part) : CurrentBackward(nullptr, nullptr, &reach, is_part) {}
  /// Of a captured graph, which needs no walk: it is made when it is asked for.
  explicit CurrentBackward(const BackwardRequest& request)
      : CurrentBackward(&request, nullptr, nullptr, false) {}
  ~CurrentBackward();
  CurrentBackward(const CurrentBackward&) = delete;
  static CurrentBackward* innermost();

  uint64_t id() const { return whole_->id_; }
  bool reaches(uint64_t seq) { return reaches_place(seq); }
  bool reaches(const TensorImpl* leaf) { return reaches_place(leaf); }
  /// Whether the gradient that goes along `edge` is wanted: not in a backward to some inputs that do not lie there.
  bool wants(const Edge& edge) {
    return edge && (!request_ || !request_->to_inputs || walk().target(edge) != SeqMap::kNone);
  }
  /// Not of a recorded one.
  Walk& walk();
  /// `callback` is called when the backward is over.
  void queue(std::function<void()> callback) { whole_->callbacks_.push_back(std::move(callback)); }
  /// Calls what was queued, also what is queued meanwhile, in order. Then it runs no longer.
  void end();

 private:
  template <class Place>
  bool reaches_place(Place place) {
    return reach().reaches(place) || (whole_ != this && outer_->reaches_place(place));
  }
  CurrentBackward(const BackwardRequest* request, Walk* walk, Reach* reach, bool is_part);
  Reach& reach() { return reach_ ? *reach_ : walk(); }
  void unlink();

  const BackwardRequest* const request_;  // null: of a recorded one
  Walk* walk_;
  Reach* const reach_;
  std::unique_ptr<Walk> own_walk_;
  CurrentBackward* outer_;
  CurrentBackward* whole_;  // what it is part of, or itself
  const Nesting nesting_{"backward"};
  uint64_t id_;
  std::vector<std::function<void()>> callbacks_;
};

/// What a grad() call makes of gradients that are undefined: zeros, or Error(unused_input) unless they may be missing.
void finish_gradients(Tensors& gradients, const Tensors& inputs, bool allow_unused, bool materialize,
                      SourceLocation where);

}  // namespace retrograd
