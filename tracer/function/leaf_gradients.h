// LeafGradients: .grad of leaves in a recorded function.
//
// During recording, .grad of a leaf is a recorded value; LeafGradients keeps the previous .grad, which restore() puts
// back. Before host code, a node sets .grad to its eager value (publish); at the end the remaining gradients become
// outputs (finish).
// A post-accumulate hook may write to the gradient and to the leaf, which are read in place. It may also drop or
// replace .grad: the change persists, and later nodes read what the hook left. A step that reads a gradient which the
// hook dropped in a run fails there, since an eager step would have done something else. A tensor that a hook assigns
// to .grad gets the layout of the previous .grad once the step writes to it.
// Start reading at accumulate().
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/bookkeeping.h"
#include "tracer/function/recorded_function.h"

namespace retrograd::inline v0 {

class FunctionRecorder;
class PostAccumulateCode;

/// Whether f holds for each hook of the leaf, in the order of its lists; stops at the first that fails.
template <class F>
bool all_hooks(const TensorImpl& leaf, const F& f) {
  if (!leaf.meta || !leaf.meta->has_hooks()) return true;
  const AutogradMeta& meta = *leaf.meta;
  for (const HookList* list :
       {&meta.tensor_hooks, &meta.pre_hooks, &meta.post_hooks, &meta.post_accumulate_hooks})
    for (const RefPtr<Hook>& h : list->all())
      if (h->is_live() && !f(h)) return false;
  return true;
}
/// The live hooks of the leaf, in the order of its lists.
std::vector<RefPtr<Hook>> live_hooks(const TensorImpl& leaf);

class LeafGradients {
 public:
  explicit LeafGradients(FunctionRecorder& of) : of_(of) {}

  void is_replaced(TensorImpl& leaf) { grad_of(leaf, true); }
  /// From now on the initial .grad of the leaf is an input, whichever tensor that is in a run. A stand-in uses its
  /// argument's .grad.
  void is_read(TensorImpl& leaf);
  /// Makes the arrived value .grad, or adds it to .grad.
  void accumulate(TensorImpl& leaf, const Tensor& grad);
  /// Calls an opaque hook on a leaf whose .grad has been updated.
  void emit_post_accumulate(const HookAttrs& attrs, SourceLocation where);
  /// Sets .grad of all leaves for host code.
  void publish();

  /// A leaf as host code sees it: a leaf from outside, or the argument that is bound to the input with this value.
  struct LeafOfRun {
    TensorImpl* outside;  // null: the argument
    ir::ValueId argument;
  };
  LeafOfRun leaf_of_run(TensorImpl& leaf);
  /// The leaf whose .grad this is now; null if no .grad that the function has read or written matches.
  TensorImpl* leaf_with_grad(const Tensor& tensor) const;

  /// A leaf that received a gradient in the function's own backward, its hooks at that time, and the number of nodes
  /// with effects recorded before.
  struct Reached {
    RefPtr<TensorImpl> leaf;
    std::vector<RefPtr<Hook>> hooks;
    size_t effects;
  };
  void note_reached(TensorImpl& leaf);
  const std::vector<Reached>& reached() const { return reached_; }

  /// Records the final state of .grad. `results`: of the function.
  void finish(const Tensors& results, RecordedFunction& out);
  void restore();

 private:
  struct LeafGrad {
    RefPtr<TensorImpl> leaf;
    Tensor before;
    bool is_dropped_first;
    size_t last_read = 0;                // as RecordedFunction::Grad::last_read
    ir::ValueId outside = ir::kNoValue;  // the .grad that host code sees; kNoValue: `before`, or none
    bool is_dropped_outside = false;     // none
    std::vector<PostAccumulateCode*> hooks = {};  // that ran after it had been accumulated

    bool was_published() const { return outside != ir::kNoValue || is_dropped_outside; }
  };
  // The value for the memory of .grad, and the layout of .grad in it, unless .grad is that value.
  struct GradMemory {
    ir::ValueId value;
    std::optional<Layout> layout = {};
  };
  LeafGrad& grad_of(TensorImpl& leaf, bool is_dropped);
  LeafGrad* known(const TensorImpl& leaf);
  Tensor new_grad(const Tensor& grad, const TensorImpl& leaf);
  GradMemory memory_of(const Tensor& grad);
  Location location_of(const Tensor& grad);
  bool is_changed(const LeafGrad& g, const Tensor& grad);
  void publish(LeafGrad& g);
  RecordedFunction::Grad after(const LeafGrad& g);
  void check_one_leaf(const TensorImpl& leaf) const;

  FunctionRecorder& of_;
  std::vector<LeafGrad> grads_;
  std::unordered_map<const TensorImpl*, size_t> numbers_;  // of grads_, by the leaf
  std::vector<Reached> reached_;
};

}  // namespace retrograd
