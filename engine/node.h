// Node: a step of a backward as the public API shows it: a record of the tape, or a leaf with what accumulates its
// gradient (PyTorch: AccumulateGrad).
//
// A handle of two words, equal to another of the same record or leaf; it keeps what it shows. An empty one, the
// grad_fn() of a leaf, equals nullptr and is false in a condition. `node.name()` and `node->name()` are the same.
//
//   input      a gradient that arrives: of a result of the forward call
//   output     a gradient that leaves: of an operand. Its edge leads to the node that receives it
//
// Names are those of the ops, "mul", and "accumulate_grad" for a leaf: PyTorch's ("MulBackward0") follow no rule.
// A graph is walked with next_edges() and a list of what is still to come: no function here recurses.
// Of an empty node name() is "" and the counts are 0; whatever else needs a record is an Error(hook_forbidden).
#pragma once

#include "engine/tape.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

struct NodeEdge;

class Node {
 public:
  Node() = default;
  Node(std::nullptr_t) {}
  explicit Node(RefPtr<Record> record) : record_(std::move(record)) {}
  /// The node that an edge leads to; empty where it leads nowhere.
  explicit Node(const Edge& edge)
      : record_(RefPtr<Record>(edge.record())), leaf_(RefPtr<TensorImpl>(edge.leaf())) {}

  bool defined() const { return record_ || leaf_; }
  explicit operator bool() const { return defined(); }
  friend bool operator==(const Node& a, const Node& b) { return a.id() == b.id(); }
  friend bool operator==(const Node& node, std::nullptr_t) { return !node.defined(); }
  const Node* operator->() const { return this; }
  const Node& operator*() const { return *this; }
  /// The same for equal nodes only, as long as one of them lives: for sets and maps. Null for an empty node.
  const void* id() const { return record_ ? static_cast<const void*>(record_.get()) : leaf_.get(); }

  std::string name() const;
  /// The line of the forward call; none of a leaf.
  SourceLocation where() const { return record_ ? record_->where() : SourceLocation(); }
  /// Records made later on a thread have higher numbers, and so have consumers than their producers: a backward runs
  /// what is ready in descending order. A leaf, which waits for its last consumer, has the highest one, as in PyTorch.
  uint64_t sequence_nr() const;
  /// The length of the longest path from here to a leaf, in edges. Looks at all that is reached from here.
  uint64_t topological_nr() const;

  /// Gradients that arrive, and what they must be: dtype, device and shape.
  int num_inputs() const { return record_ ? record_->outputs : leaf_ ? 1 : 0; }
  TensorType input_metadata(int input, SourceLocation where = SourceLocation::current()) const;
  /// Gradients that leave, one for each operand of the forward call.
  int num_outputs() const { return record_ ? record_->operands : 0; }
  NodeEdge next_edge(int output, SourceLocation where = SourceLocation::current()) const;
  std::vector<NodeEdge> next_edges() const;
  std::vector<NodeEdge> next_functions() const;  // Python's name of next_edges()
  /// The leaf; undefined for a record.
  Tensor variable() const { return Tensor(leaf_); }

  // Saved values, by number or by the name that the op's documentation gives the operand (docs/ops.md); "result", or
  // "result0", "result1", ..., for results.
  int saved_count() const { return record_ ? record_->slots : 0; }
  std::string saved_name(int slot, SourceLocation where = SourceLocation::current()) const;
  /// The value at its place in the graph, as the rule would get it: an unpack hook is called, outside of the order of a
  /// backward. Undefined for an operand that was not given. Errors: backward_twice_freed, version_mismatch,
  /// bad_argument when there is none of that number or name.
  Tensor saved(int slot, SourceLocation where = SourceLocation::current()) const;
  Tensor saved(std::string_view name, SourceLocation where = SourceLocation::current()) const;
  /// A pair of hooks for one saved value. Error(hook_forbidden) when it has one already or is released.
  void register_saved_tensor_hooks(int slot, RefPtr<SavedTensorHooks> hooks,
                                   SourceLocation where = SourceLocation::current()) const;

  // Of a leaf these are hooks of its accumulation (Tensor::register_accumulate_grad_prehook and _posthook).
  /// Tensors(const Tensors&): runs before the rule with the gradients of the results; a non-empty answer replaces them.
  template <class F>
  HookHandle register_prehook(F&& hook, SourceLocation where = SourceLocation::current()) const {
    return add_prehook(detail::pre_hook(std::forward<F>(hook)), where);
  }
  /// Tensors(const Tensors&, const Tensors&): runs after the rule with (grad_inputs, grad_outputs); a non-empty answer
  /// replaces grad_inputs.
  template <class F>
  HookHandle register_hook(F&& hook, SourceLocation where = SourceLocation::current()) const {
    return add_posthook(detail::post_hook(std::forward<F>(hook)), where);
  }

  const RefPtr<Record>& record() const { return record_; }

 private:
  HookHandle add_prehook(std::function<Tensors(const Tensors&)> hook, SourceLocation where) const;
  HookHandle add_posthook(std::function<Tensors(const Tensors&, const Tensors&)> hook,
                          SourceLocation where) const;
  Slot& slot_at(int slot, std::string_view op, SourceLocation where) const;

  RefPtr<Record> record_;
  RefPtr<TensorImpl> leaf_;  // at most one of the two
};

/// Where a gradient goes: input `input_nr` of a node; nowhere if the node is empty.
struct NodeEdge {
  Node function;
  uint32_t input_nr = 0;
  bool is_valid() const { return function.defined(); }
  friend bool operator==(const NodeEdge&, const NodeEdge&) = default;
};

namespace autograd {
/// Where the gradient of `tensor` goes: for a leaf, to its accumulation. Empty when it requires none.
NodeEdge get_gradient_edge(const Tensor& tensor, SourceLocation where = SourceLocation::current());
}  // namespace autograd

}  // namespace retrograd

template <>
struct std::hash<retrograd::Node> {
  size_t operator()(const retrograd::Node& node) const { return std::hash<const void*>()(node.id()); }
};
#pragma GCC visibility pop
