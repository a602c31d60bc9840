// See ir/passes/node_copies.h.
#include "ir/passes/node_copies.h"

#include <algorithm>
#include <unordered_set>

namespace retrograd::inline v0::ir {

std::vector<int32_t> producers_of(const Graph& graph) {
  std::vector<int32_t> all(static_cast<size_t>(graph.value_count()), -1);
  for (size_t n = 0; n < graph.nodes().size(); ++n)
    for (int r = 0; r < graph.nodes()[n].results; ++r)
      all[static_cast<size_t>(graph.nodes()[n].first_result + r)] = static_cast<int32_t>(n);
  return all;
}

ValueId NodeCopies::of(ValueId value, const Node& user) {
  for (int32_t number : missing_for(value)) {
    const Node& node = from_.nodes()[static_cast<size_t>(number)];
    std::vector<ValueId> operands;
    for (ValueId v : from_.operands(node)) operands.push_back(there(v));
    const TensorType type = from_.type(node.first_result);
    copies_[node.first_result] = to_.append(*node.op, operands, node.attrs, {&type, 1}, user).first_result;
  }
  return copies_.at(value);
}

// The new value, if it is given or has been copied.
ValueId NodeCopies::there(ValueId value) const {
  if (value == kNoValue) return kNoValue;
  const auto it = copies_.find(value);
  return it == copies_.end() ? given_(value) : it->second;
}

// The nodes that compute a value from what is there, in order.
std::vector<int32_t> NodeCopies::missing_for(ValueId value) const {
  std::vector<int32_t> nodes;
  std::unordered_set<int32_t> seen;
  std::vector<ValueId> todo{value};
  while (!todo.empty()) {
    const ValueId v = todo.back();
    todo.pop_back();
    if (v == kNoValue || there(v) != kNoValue) continue;
    const int32_t number = producer_[static_cast<size_t>(v)];
    if (!seen.insert(number).second) continue;
    nodes.push_back(number);
    const auto operands = from_.operands(from_.nodes()[static_cast<size_t>(number)]);
    todo.insert(todo.end(), operands.begin(), operands.end());
  }
  std::ranges::sort(nodes);
  return nodes;
}

}  // namespace retrograd::ir
