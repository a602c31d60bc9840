// The backward driver, written once against Emitter: run into a Taper over a Runner it is the eager backward, run into
// a Recorder it traces.
//
// For each record of the walk, in this order: the tensor hooks of its results, retain_grad, pre-hooks, the rule (whose
// unpacks run at first use), the unpacks of hooked slots that the rule did not ask for, the release of the slots,
// post-hooks, and the gradients move on to the producers. Then for each leaf whose last consumer this record was:
// tensor hooks, accumulation, post-accumulate hooks. The lists of hooks are read when a record or leaf begins, the list
// of post-hooks when the rule is done. docs/hooks.md has the complete order.
// Limits: engine/nesting.h limits how deep backwards inside hooks nest.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "engine/nesting.h"
#include "engine/open_scopes.h"
#include "engine/walk.h"

namespace retrograd::inline v0 {

struct BackwardRequest {
  Tensors roots, cotangents;     // defined and checked
  std::vector<Edge> root_edges;  // where the cotangents are received; they keep the graph alive
  bool to_inputs = false;        // to `input_edges` only; else to all leaves
  std::vector<Edge> input_edges;
  bool accumulate = true;  // into .grad; else the gradients of the inputs are returned
  bool retain_graph = false;
  bool create_graph = false;
  RefPtr<SavedTensorHooks> pair;  // create_graph: the default pair, for what the backward itself saves
  SourceLocation where = {};      // of the call in user code
  // The gradients are parts of sums: no path goes through an input, and the tensor hooks of the inputs, which will see
  // the sums, are not called.
  bool ends_at_inputs = false;

  Walk walk() const {
    using At = Walk::AtInputs;
    return Walk(root_edges, to_inputs ? &input_edges : nullptr,
                ends_at_inputs ? At::end
                : accumulate   ? At::run
                               : At::go_on);
  }
};

/// Checks the roots and fills in missing cotangents (ones).
BackwardRequest make_request(const Tensors& roots, const Tensors& cotangents,
                             const std::optional<Tensors>& inputs, bool accumulate,
                             std::optional<bool> retain_graph, bool create_graph, SourceLocation where);

class DriverObserver;

/// Runs the backward into the current emitter, in anomaly mode if that is on, and as part of the recording while one is
/// made.
Tensors run_backward(const BackwardRequest& request);
/// Runs the backward into `emitter`. Returns the gradients of the inputs when they are not accumulated.
Tensors run_backward(const BackwardRequest& request, Walk& walk, Emitter& emitter,
                     DriverObserver* observer = nullptr);

/// The state of a backward that a captured graph has begun and left between two records or after a rule.
struct BackwardState {
  Tensors grads;  // gradients received so far, by the number that the walk gives them; undefined when used up
  Tensors captured;        // gradients of the inputs so far
  size_t next_record = 0;  // place in the order
  size_t next_leaf = 0;
  bool rule_is_done = false;  // of the next record: `given` holds its results
  Tensors given;
};
/// Continues eagerly from `state` to the end.
Tensors resume_backward(const BackwardRequest& request, Walk& walk, BackwardState state);

/// Is told what the driver does with gradients. A Recorder notes it, so that a run of the graph can be left for
/// resume_backward().
class DriverObserver {
 public:
  virtual void record_begins(uint32_t place) = 0;
  /// Called before the post-hooks, which see both lists.
  virtual void rule_gave(uint32_t place, std::span<const Tensor> grads, std::span<const Tensor> given) = 0;
  virtual void leaf_begins(uint32_t index) = 0;
  virtual void arrived(uint32_t grad, const Tensor& sum) = 0;
  virtual void captured(uint32_t input, const Tensor& grad) = 0;

 protected:
  ~DriverObserver() = default;
};
/// Records the backward into `recorder`. Rules, and user code that is recorded, emit into a Taper over it: they may
/// differentiate.
Tensors record_backward(const BackwardRequest& request, Walk& walk, Emitter& recorder,
                        DriverObserver* observer = nullptr);

/// Receives the requests of autograd::backward and autograd::grad while a scope is open on this thread: tracing takes
/// them over this way.
class BackwardRunner {
 public:
  using Scopes = OpenScopes<std::shared_ptr<BackwardRunner>>;
  virtual Tensors run(const BackwardRequest& request) = 0;
  /// That of the innermost scope. Null: the driver runs into the current emitter.
  static std::shared_ptr<BackwardRunner> current() {
    const std::shared_ptr<BackwardRunner>* runner = Scopes::innermost();
    return runner ? *runner : nullptr;
  }

 protected:
  ~BackwardRunner() = default;
};

/// Takes gradients of leaves while the record that gives them still runs. A recorded function, which is one record,
/// gives those early that hooks consume or that are added to .grad (tracer/function/early_gradients.h).
class LeafDelivery {
 public:
  struct Place {
    int operand;     // of the record
    uint32_t index;  // among the leaves of the walk
    TensorImpl* leaf;
  };
  /// The operands of the record that runs which are leaves whose only gradient to come is that from this record, and
  /// that have post-accumulate hooks or a .grad, unless that is small.
  virtual std::vector<Place> early_leaves(const Record& record) = 0;
  /// Accumulates, and calls the leaf's hooks. The record gives no gradient for this operand at its end.
  virtual void deliver(const Place& place, Tensor&& gradient) = 0;

 protected:
  ~LeafDelivery() = default;
};

/// The backward that runs on this thread, for multi-grad hooks and callbacks. Nested backwards stack.
class CurrentBackward {
 public:
  CurrentBackward(const BackwardRequest& request, Walk& walk)
      : CurrentBackward(&request, &walk, nullptr, false) {}
  /// For a backward that is part of a recorded function. `is_part`: it is part of the backward that already runs, and
  /// adds what it reaches to that one.
  CurrentBackward(Reach& reach, bool is_part) : CurrentBackward(nullptr, nullptr, &reach, is_part) {}
  /// For a captured graph, which needs no walk: it is made on first use.
  explicit CurrentBackward(const BackwardRequest& request)
      : CurrentBackward(&request, nullptr, nullptr, false) {}
  ~CurrentBackward();
  CurrentBackward(const CurrentBackward&) = delete;
  static CurrentBackward* innermost();

  uint64_t id() const { return whole_->id_; }
  bool reaches(uint64_t seq) { return reaches_place(seq); }
  bool reaches(const TensorImpl* leaf) { return reaches_place(leaf); }
  /// Whether the gradient along `edge` is wanted. It is not in a backward to given inputs when none of them is reached
  /// through it.
  bool wants(const Edge& edge) {
    return edge && (!request_ || !request_->to_inputs || walk().target(edge) != SeqMap::kNone);
  }
  /// Not available for a recorded backward.
  Walk& walk();
  /// Null if gradients are taken at the end of a record only.
  LeafDelivery* delivery() const { return delivery_; }
  void set_delivery(LeafDelivery* delivery) { delivery_ = delivery; }
  /// `callback` is called when the backward has finished.
  void queue(std::function<void()> callback) { whole_->callbacks_.push_back(std::move(callback)); }
  /// `region` holds values that it has recomputed for this backward, until the end.
  void add_region(RefPtr<Region> region);
  /// Calls the queued callbacks in order, including those that are queued meanwhile. Then the backward no longer runs.
  void end();

 private:
  template <class Place>
  bool reaches_place(Place place) {
    return reach().reaches(place) || (whole_ != this && outer_->reaches_place(place));
  }
  CurrentBackward(const BackwardRequest* request, Walk* walk, Reach* reach, bool is_part);
  Reach& reach() { return reach_ ? *reach_ : walk(); }
  void unlink();
  void forget_regions() noexcept;

  const BackwardRequest* const request_;  // null: a recorded backward
  Walk* walk_;
  Reach* const reach_;
  LeafDelivery* delivery_ = nullptr;
  std::unique_ptr<Walk> own_walk_;
  CurrentBackward* outer_;
  CurrentBackward* whole_;  // the backward that this one is part of, or itself
  const Nesting nesting_{"backward"};
  uint64_t id_;
  std::vector<std::function<void()>> callbacks_;
  std::vector<RefPtr<Region>> regions_;
};

/// Handles the undefined gradients of a grad() call: zeros, or Error(unused_input) unless they may be missing.
void finish_gradients(Tensors& gradients, const Tensors& inputs, bool allow_unused, bool materialize,
                      SourceLocation where);

}  // namespace retrograd
