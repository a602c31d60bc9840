// See ir/passes/rewrite.h. Nodes are visited in order, so the producers of a node's operands are rewritten before the
// node.
#include "ir/passes/rewrite.h"

#include <algorithm>
#include <functional>

#include "ir/passes/fuse.h"
#include "ir/type_check.h"

namespace retrograd::inline v0::ir {

bool apply_rewrites(Graph& graph, std::span<const Rewrite> rules, Remap& remap) {
  Match match(graph, rules);
  for (size_t i = 0; i < graph.nodes().size(); ++i) match.visit(i);
  if (match.changed_) remap = match.rewriter_.finish();
  return match.changed_;
}

Match::Match(Graph& graph, std::span<const Rewrite> rules)
    : graph_(graph), rewriter_(graph), classes_(graph), rules_(rules.begin(), rules.end()) {
  std::ranges::stable_sort(rules_, std::less(), &Rewrite::op);
  for (const Input& input : graph.inputs())
    if (input.kind == Input::Kind::tensor) old_.push_back(input.value);
  givers_.assign(old_.size(), -1);
}

const Node* Match::giver(ValueId v) const {
  const int32_t node = v == kNoValue ? -1 : givers_[static_cast<size_t>(v)];
  return node < 0 ? nullptr : &rewriter_.nodes()[static_cast<size_t>(node)];
}

void Match::find_elementwise_uses() {
  used_elementwise_.assign(static_cast<size_t>(graph_.value_count()), 1);
  const auto refuse = [&](ValueId v) {
    if (v != kNoValue) used_elementwise_[static_cast<size_t>(v)] = 0;
  };
  for (const Node& node : graph_.nodes())
    if (!node.op->is(Trait::elementwise) || !makes_memory(*node.op))
      std::ranges::for_each(graph_.operands(node), refuse);
  std::ranges::for_each(graph_.outputs(), refuse);
}

bool Match::is_used_elementwise() {
  if (used_elementwise_.empty()) find_elementwise_uses();
  return used_elementwise_[static_cast<size_t>(result_)];
}

bool Match::is_used_once(ValueId v) {
  if (uses_.empty()) uses_ = count_uses(graph_);
  return uses_[static_cast<size_t>(old_[static_cast<size_t>(v)])] == 1;
}

bool Match::is_used_in_line(ValueId v) {
  if (uses_.empty()) uses_ = count_uses(graph_);
  const ValueId memory = classes_.representative(old_[static_cast<size_t>(v)]);
  if (!classes_.is_private(memory)) return false;
  for (size_t i = 0; i < uses_.size(); ++i)
    if (uses_[i] > 1 && classes_.representative(static_cast<ValueId>(i)) == memory) return false;
  return true;
}

void Match::visit(size_t index) {
  node_ = &graph_.nodes()[index];
  index_ = index;
  operands_.clear();
  for (ValueId v : graph_.operands(*node_)) operands_.push_back(rewriter_.now(v));
  op_ = node_->op;
  result_ = node_->first_result;
  attrs_ = node_->attrs;
  value_ = kNoValue;
  is_other_ = false;
  if (op_->is(Trait::pure) && node_->results == 1)
    for (int step = 0; step < kMostSteps && value_ == kNoValue && apply_one(); ++step) changed_ = true;
  put(index);
}

bool Match::apply_one() {
  const auto any_applies = [&](const OpInfo* key) {
    return std::ranges::any_of(std::ranges::equal_range(rules_, key, std::less(), &Rewrite::op),
                               [&](const Rewrite& rule) { return rule.apply(*this); });
  };
  return any_applies(op_) || (op_->is(Trait::elementwise) && any_applies(nullptr));
}

void Match::put(size_t index) {
  if (value_ != kNoValue) return rewriter_.replace(result_, value_);
  if (is_other_) {
    const Node& made = rewriter_.append(*op_, operands_, attrs_, {&type(), 1}, *node_);
    if (!makes_memory(*op_))
      for (ValueId v : operands_)
        if (v != kNoValue) classes_.merge(old_[static_cast<size_t>(v)], result_);
    rewriter_.replace(result_, made.first_result);
  } else {
    rewriter_.keep(index, operands_);
  }
  note_new_values(result_);
}

// The last node of the new list has just been added; its results stand for `old` and the values after it.
void Match::note_new_values(ValueId old) {
  segments_.push_back(classes_.segment(index_));
  while (givers_.size() < static_cast<size_t>(rewriter_.value_count())) {
    givers_.push_back(static_cast<int32_t>(rewriter_.nodes().size()) - 1);
    old_.push_back(old++);
  }
}

bool Match::become(ValueId v) {
  const ValueId old = old_[static_cast<size_t>(v)];
  if (!same_type(type(v), type())) return false;
  if (makes_memory(*node_->op) && !classes_.may_share(old, result_)) return false;
  classes_.merge(old, result_);
  value_ = v;
  return true;
}

// Whether the operands still have the values that `through` read.
bool Match::may_read(const std::vector<ValueId>& operands, const Node* through) {
  if (!through || !reads_memory(*through->op) ||
      segments_[static_cast<size_t>(through - rewriter_.nodes().data())] == classes_.segment(index_))
    return true;
  return std::ranges::all_of(operands, [&](ValueId v) {
    return v == kNoValue || classes_.is_private(old_[static_cast<size_t>(v)]);
  });
}

// Whether the result may be in the memory where it would be then: its own, or that of an operand.
bool Match::may_become(const OpInfo& op, const std::vector<ValueId>& operands) {
  const bool had_memory = makes_memory(*node_->op), has_memory = makes_memory(op);
  if (had_memory == has_memory) return true;
  if (has_memory) return classes_.is_private(result_);
  return std::ranges::all_of(operands, [&](ValueId v) {
    return v == kNoValue || classes_.may_share(old_[static_cast<size_t>(v)], result_);
  });
}

bool Match::become(const OpInfo& op, std::vector<ValueId> operands, const void* attrs, const Node* through) {
  if (!may_read(operands, through) || !may_become(op, operands) ||
      !same_type(infer(op, operands, attrs), type()))
    return false;
  const auto* bytes = static_cast<const std::byte*>(attrs);
  attr_bytes_ = std::vector<std::byte>(bytes, bytes + (attrs ? op.attrs_size : 0));
  attrs_ = attr_bytes_.empty() ? nullptr : attr_bytes_.data();
  operands_ = std::move(operands);
  op_ = &op;
  return is_other_ = true;
}

ValueId Match::add(const OpInfo& op, const std::vector<ValueId>& operands, const void* attrs,
                   const Node* through) {
  if (!may_read(operands, through)) return kNoValue;
  const TensorType found = infer(op, operands, attrs);
  if (found.dtype == ScalarType::Undefined) return kNoValue;
  const ValueId v = rewriter_.append(op, operands, attrs, {&found, 1}, *node_).first_result;
  note_new_values(result_);
  return v;
}

// The type of the result; none if the op's rule refuses the operands.
TensorType Match::infer(const OpInfo& op, const std::vector<ValueId>& operands, const void* attrs) const {
  SymbolTable::Scope scope(&graph_.symbols);
  std::vector<RefPtr<TensorImpl>> cells;
  std::vector<TensorImpl*> given;
  for (ValueId v : operands) {
    given.push_back(nullptr);
    if (v == kNoValue) continue;
    cells.push_back(TensorImpl::make());
    cells.back()->set_type(type(v).dtype, type(v).device, type(v).shape);
    given.back() = cells.back().get();
  }
  const RefPtr<TensorImpl> result = TensorImpl::make();
  TensorImpl* out = result.get();
  try {
    infer_types({&op, given, const_cast<void*>(attrs), node_->where, 1}, &out);
  } catch (const Error&) {
    return {};
  }
  return result->type();
}

}  // namespace retrograd::ir
