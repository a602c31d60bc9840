// Rewrites: rules that replace one node by an existing value, or by another node. The passes `simplify` and `broadcast`
// apply tables of them. The caller provides the tables (rewrites/rewrites.h), since rules know ops and this folder does
// not.
//
//   bool twice_negated(Match& m) {                                   // neg(neg(x)) is x
//     const Node* inner = m.giver(m.operand(0), ops::info<ops::Neg>);
//     return inner && m.become(m.operand(*inner, 0));
//   }
//
// A rule inspects a node through a Match and returns false, or what become() returns. It must be exact: the bits of the
// result are those that the node would give, and so is its layout; NaNs stay NaNs, their other bits are free. Match
// takes care of memory (ir/passes/memory_classes.h): become() refuses what would make a write by user code visible
// where it was not before. Sizes and numbers that may be symbols are compared by raw() and is_symbolic() only: any
// other comparison adds a guard.
#pragma once

#include "ir/passes/memory_classes.h"
#include "ir/rewriter.h"

namespace retrograd::inline v0::ir {

class Match;

struct Rewrite {
  const OpInfo* op;  // of the nodes that it is tried on; null: elementwise ones
  bool (*apply)(Match&);
};

/// Tries the rules on each node, in order, until none applies. Returns whether something was changed; then `remap` is
/// set.
bool apply_rewrites(Graph& graph, std::span<const Rewrite> rules, Remap& remap);

/// One node with one result, and the producers of its operands. All values are those of the new graph: already
/// rewritten.
class Match {
 public:
  const OpInfo& op() const { return *op_; }
  std::span<const ValueId> operands() const { return operands_; }
  ValueId operand(size_t i) const { return operands_[i]; }
  template <class A>
  const A& attrs() const {
    return *static_cast<const A*>(attrs_);
  }
  std::span<const std::byte> attribute_bytes() const {
    return {static_cast<const std::byte*>(attrs_), attrs_ ? op_->attrs_size : size_t{0}};
  }
  /// The type of the result.
  const TensorType& type() const { return graph_.type(result_); }
  const TensorType& type(ValueId v) const { return rewriter_.type(v); }

  /// The node that gives v; null for an input or no value. The address of a node is valid until add().
  const Node* giver(ValueId v) const;
  /// The node that gives v, if it is one of `op`.
  const Node* giver(ValueId v, const OpInfo& op) const {
    const Node* node = giver(v);
    return node && node->op == &op ? node : nullptr;
  }
  std::span<const ValueId> operands(const Node& node) const { return rewriter_.operands(node); }
  ValueId operand(const Node& node, size_t i) const { return operands(node)[i]; }
  /// Only elementwise nodes use the result: they give the same bits for any layout.
  bool is_used_elementwise();
  /// The recorded value of v is used once.
  bool is_used_once(ValueId v);
  /// Only the graph sees the memory of v, and each value in it (v and its views) is used at most once.
  bool is_used_in_line(ValueId v);

  /// v replaces the result. False, with nothing done, when the types differ or memory does not allow it.
  bool become(ValueId v);
  /// The node becomes another, to which rules are applied again. `through`: the node whose operands are used in place
  /// of its result. False, with nothing done, when they may have changed since it read them, or memory does not allow
  /// it.
  bool become(const OpInfo& op, std::vector<ValueId> operands, const void* attrs,
              const Node* through = nullptr);
  /// Adds a node with one result, for the node to use. kNoValue if the type rule of the op refuses the
  /// operands, or they may have changed since `through` read them.
  ValueId add(const OpInfo& op, const std::vector<ValueId>& operands, const void* attrs,
              const Node* through = nullptr);

 private:
  friend bool apply_rewrites(Graph&, std::span<const Rewrite>, Remap&);
  explicit Match(Graph& graph, std::span<const Rewrite> rules);
  void visit(size_t index);
  bool apply_one();
  void put(size_t index);
  bool may_read(const std::vector<ValueId>& operands, const Node* through);
  bool may_become(const OpInfo& op, const std::vector<ValueId>& operands);
  TensorType infer(const OpInfo& op, const std::vector<ValueId>& operands, const void* attrs) const;
  void find_elementwise_uses();
  void note_new_values(ValueId old);

  static constexpr int kMostSteps = 16;  // per node: each rule makes it simpler, so few are needed

  Graph& graph_;
  Rewriter rewriter_;
  MemoryClasses classes_;                  // of old values
  std::vector<Rewrite> rules_;             // sorted by op
  std::vector<ValueId> old_;               // of each new value: an old one whose memory it has
  std::vector<int32_t> givers_;            // of each new value: the new node
  std::vector<int32_t> segments_;          // of each new node
  std::vector<uint8_t> used_elementwise_;  // of each old value; empty until needed
  std::vector<int32_t> uses_;              // the same
  bool changed_ = false;

  // The current node: what it was, and what it is to become.
  const Node* node_ = nullptr;
  size_t index_ = 0;
  ValueId result_ = kNoValue;
  const OpInfo* op_ = nullptr;
  std::vector<ValueId> operands_;
  const void* attrs_ = nullptr;
  std::vector<std::byte> attr_bytes_;  // of the node that it becomes
  ValueId value_ = kNoValue;           // that replaces it
  bool is_other_ = false;
};

}  // namespace retrograd::ir
