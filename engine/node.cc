// See engine/node.h.
#include "engine/node.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/bookkeeping.h"
#include "engine/recording.h"

namespace retrograd::inline v0 {
namespace {

void require_node(const Node& node, std::string_view what, SourceLocation where) {
  if (!node)
    fail(Category::hook_forbidden, what,
         "a leaf has no record. Hint: Tensor::register_hook, or autograd::get_gradient_edge(leaf).function",
         where);
}

void check_number(int number, int count, std::string_view what, std::string_view op, SourceLocation where) {
  if (number < 0 || number >= count)
    fail(Category::bad_argument, op, fmt::format("there is no {} {}, of {}", what, number, count), where);
}

HookHandle add(HookList& list, Hook::Kind kind, RefPtr<Hook> hook, SourceLocation where) {
  hook->kind = kind;
  hook->where = where;
  return list.add(std::move(hook));
}

// All records that are reached from `root`, producers before consumers.
std::vector<const Record*> reached_from(const Record& root) {
  std::vector<const Record*> found{&root}, pending{&root};
  std::unordered_map<const Record*, bool> seen{{&root, true}};
  while (!pending.empty()) {
    const Record& record = *pending.back();
    pending.pop_back();
    for (int i = 0; i < record.operands; ++i)
      if (const Record* next = record.edge(i).record(); next && seen.emplace(next, true).second) {
        found.push_back(next);
        pending.push_back(next);
      }
  }
  std::ranges::sort(found, {}, &Record::seq);
  return found;
}

// Name number `index` of "a, b, c"; the last one when there are fewer, as of an op with any number of operands.
std::string_view listed_name(std::string_view names, int index) {
  for (; index > 0 && names.find(", ") != names.npos; --index) names.remove_prefix(names.find(", ") + 2);
  return names.substr(0, names.find(", "));
}

}  // namespace

std::string Node::name() const {
  return std::string(record_ ? record_->op->name : leaf_ ? ops::accumulate_grad.name : std::string_view());
}

uint64_t Node::sequence_nr() const {
  return record_ ? record_->seq : leaf_ ? std::numeric_limits<uint64_t>::max() : 0;
}

uint64_t Node::topological_nr() const {
  if (!record_) return 0;
  std::unordered_map<const void*, uint64_t> longest;  // a leaf has 0
  for (const Record* record : reached_from(*record_)) {
    uint64_t& length = longest[record];
    for (int i = 0; i < record->operands; ++i)
      if (const Edge& edge = record->edge(i)) length = std::max(length, longest[edge.target()] + 1);
  }
  return longest[record_.get()];
}

TensorType Node::input_metadata(int input, SourceLocation where) const {
  require_node(*this, "input_metadata", where);
  check_number(input, num_inputs(), "input", "input_metadata", where);
  return record_ ? record_->output_type(input) : leaf_->type();
}

NodeEdge Node::next_edge(int output, SourceLocation where) const {
  require_node(*this, "next_edge", where);
  check_number(output, num_outputs(), "output", "next_edge", where);
  const Edge& edge = record_->edge(output);
  return {Node(edge), edge.record() ? edge.output_nr() : 0};
}

std::vector<NodeEdge> Node::next_edges() const {
  std::vector<NodeEdge> edges;
  edges.reserve(static_cast<size_t>(num_outputs()));
  for (int i = 0; i < num_outputs(); ++i) edges.push_back(next_edge(i));
  return edges;
}

std::vector<NodeEdge> Node::next_functions() const { return next_edges(); }

Slot& Node::slot_at(int slot, std::string_view op, SourceLocation where) const {
  require_node(*this, op, where);
  check_number(slot, saved_count(), "saved value", op, where);
  return record_->slot(slot);
}

std::string Node::saved_name(int slot, SourceLocation where) const {
  const Slot& s = slot_at(slot, "saved_name", where);
  if (s.is_result) return record_->outputs == 1 ? "result" : fmt::format("result{}", s.index);
  const std::string_view names = record_->op->operands;
  if (!names.empty()) return std::string(listed_name(names, s.index));
  return record_->operands == 1 ? "x" : std::string(1, static_cast<char>('a' + s.index));
}

Tensor Node::saved(int slot, SourceLocation where) const {
  if (slot_at(slot, "saved", where).packed())
    refuse_recording("saved", "the unpack hook of a saved value is called", where);
  const EnableGradGuard links_the_value;
  UnpackAttrs attrs{{}, record_.get(), slot};
  Tensor value;
  eager_emitter().emit({&ops::unpack, {}, &attrs, where, 1}, &value);
  return value;
}

Tensor Node::saved(std::string_view name, SourceLocation where) const {
  require_node(*this, "saved", where);
  for (int i = 0; i < saved_count(); ++i)
    if (saved_name(i, where) == name) return saved(i, where);
  fail(Category::bad_argument, "saved", fmt::format("{} has saved nothing named \"{}\"", this->name(), name),
       where);
}

void Node::register_saved_tensor_hooks(int index, RefPtr<SavedTensorHooks> hooks,
                                       SourceLocation where) const {
  require_function(static_cast<bool>(hooks), "register_saved_tensor_hooks", where);
  if (!record_ || index < 0 || index >= record_->slots)
    fail(Category::hook_forbidden, "register_saved_tensor_hooks",
         fmt::format("there is no saved value {}", index), where);
  Slot& slot = record_->slot(index);
  if (slot.packed())
    fail(Category::hook_forbidden, "register_saved_tensor_hooks",
         "hooks were registered for this saved value before", where);
  if (slot.released)
    fail(Category::hook_forbidden, "register_saved_tensor_hooks", "the saved value is freed", where);
  if (!slot.value())
    fail(Category::hook_forbidden, "register_saved_tensor_hooks", "the saved value is undefined", where);
  ++annotation_changes;
  pack_slot(*record_, slot, hooks);
}

HookHandle Node::add_prehook(std::function<Tensors(const Tensors&)> fn, SourceLocation where) const {
  require_node(*this, "register_prehook", where);
  if (leaf_) return variable().register_accumulate_grad_prehook(std::move(fn), where);
  require_function(static_cast<bool>(fn), "register_prehook", where);
  auto hook = RefPtr<Hook>::adopt(new Hook);
  hook->pre = std::move(fn);
  return add(record_->need_hooks().pre, Hook::Kind::pre, std::move(hook), where);
}

HookHandle Node::add_posthook(std::function<Tensors(const Tensors&, const Tensors&)> fn,
                              SourceLocation where) const {
  require_node(*this, "register_hook", where);
  if (leaf_) return variable().register_accumulate_grad_posthook(std::move(fn), where);
  require_function(static_cast<bool>(fn), "register_hook", where);
  auto hook = RefPtr<Hook>::adopt(new Hook);
  hook->post = std::move(fn);
  return add(record_->need_hooks().post, Hook::Kind::post, std::move(hook), where);
}

Node Tensor::grad_fn(SourceLocation where) const {
  return Node(RefPtr<Record>(const_cast<Record*>(gradient_record("grad_fn", where))));
}

namespace autograd {

NodeEdge get_gradient_edge(const Tensor& tensor, SourceLocation where) {
  const Edge edge = gradient_edge(tensor.impl("get_gradient_edge", where));
  return {Node(edge), edge.record() ? edge.output_nr() : 0};
}

}  // namespace autograd
}  // namespace retrograd
