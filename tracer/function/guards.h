// What a recording depends on, besides the operations of the function: the recording serves a call only if none of
// this has changed.
//
//   TensorGuard, TensorLocation   of one tensor                                         tensor_guard.h
//   CallGuard       the arguments of a call, gradient mode, autocast, the default pair of saved-tensor hooks
//   FunctionGuards  all of these, and tensors from outside, gradients, hooks on leaves, numbers, options of objects
// Some of this can change while a run calls user code; then the run fails (check_hooks, check_grad).
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "tracer/function/leaf_gradients.h"
#include "tracer/function/parts.h"
#include "tracer/function/recorded_function.h"
#include "tracer/function/tensor_guard.h"

namespace retrograd::inline v0 {

struct CallGuard {
  std::vector<TensorGuard> arguments;       // the tensors in them
  std::vector<FixedPart> fixed;             // what else they hold
  std::vector<size_t> same_as;              // the first argument that is this tensor
  bool gradients, inference;                // gradient mode, inference mode
  ScalarType default_dtype, autocast;       // Undefined: off
  bool has_pair;                            // a default pair of saved-tensor hooks,
  bool pair_is_pure;                        // whether it needs no guards, and
  RefPtr<SavedTensorHooks> traceable_pair;  // the pair, if it is part of the graph

  explicit CallGuard(const CallParts& given);
  /// What differs from `now`, in words; empty if nothing does. Without `sizes`, sizes of arguments may differ.
  std::string difference(const CallGuard& now, bool sizes = true) const;
};

/// A leaf that the function's own backward reaches: its hooks are recorded by object identity.
struct ReachedLeaf {
  TensorImpl* outside;  // null: an argument
  int argument;
  std::vector<RefPtr<Hook>> hooks;
  std::vector<bool> is_traceable;  // of these
  size_t effects;                  // number of nodes with effects before the gradient reaches it

  const TensorImpl& leaf(const Tensors& arguments) const {
    return outside ? *outside : arguments[static_cast<size_t>(argument)].impl();
  }
  /// Whether it has the same hooks now.
  bool holds(const Tensors& arguments) const;
  /// Whether a run that has begun calls the hooks that the leaf has now: removed opaque hooks are skipped.
  bool holds_in_run(const Tensors& arguments) const;
};

class FunctionInputs;

class FunctionGuards {
 public:
  /// `recorded` must outlive this object.
  FunctionGuards(CallGuard call, const RecordedFunction& recorded)
      : call_(std::move(call)), recorded_(recorded) {}

  const CallGuard& call() const { return call_; }
  /// Notes the leaves that backwards of the function reached while it was recorded.
  void note_reached(const std::vector<LeafGradients::Reached>& reached, const FunctionInputs& inputs);
  /// The recording depends on the locations of the arguments.
  void guard_locations(const Tensors& arguments) { locations_ = TensorLocation::of(arguments); }
  /// After the function has been recorded: guards tensors from outside, and gradients that a run begins with.
  void finish(const Tensors& arguments);

  /// Why the recording cannot serve a call; empty when it can. Without `sizes`, sizes of arguments may differ.
  std::string misfit(const CallGuard& call, const Tensors& arguments, bool sizes) const;
  /// The part of it that needs no tensor: of objects such as optimizers.
  std::string misfit_of_objects() const;
  /// Called if user code has changed hooks in a run. Leaves not yet reached must have the recorded hooks. `effects`:
  /// nodes with effects that have begun.
  void check_hooks(const Tensors& arguments, size_t effects, SourceLocation where) const;
  /// Called if user code replaces .grad of a leaf in a run.
  void check_grad(const TensorImpl& leaf, const Tensors& arguments, size_t effects,
                  SourceLocation where) const;

 private:
  void note_reached(const LeafGradients::Reached& reached, const FunctionInputs& inputs,
                    std::vector<size_t>& known);
  Tensors grads_at_begin(const Tensors& arguments) const;
  std::vector<TensorLocation> locations_of_grads(const Tensors& arguments, const Tensors& grads) const;
  bool grads_hold(const Tensors& arguments) const;
  std::string misplaced(const Tensors& arguments) const;

  const CallGuard call_;
  const RecordedFunction& recorded_;
  std::optional<std::vector<TensorLocation>> locations_;       // of the arguments, if they matter
  std::vector<std::pair<TensorImpl*, TensorGuard>> outside_;   // see outside_tensors.h
  std::unordered_set<const Storage*> written_;                 // memory of outside_ that a run writes to
  std::vector<std::pair<TensorGuard, TensorLocation>> grads_;  // that a run begins with
  std::vector<ReachedLeaf> reached_;
};

}  // namespace retrograd
