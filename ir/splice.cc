// See ir/splice.h.
#include "ir/splice.h"

#include <algorithm>

namespace retrograd::inline v0::ir {

bool can_be_spliced(const Graph& graph) {
  return graph.symbols.size() == 0 &&
         std::ranges::all_of(graph.inputs(), [](const Input& i) { return i.kind == Input::Kind::tensor; }) &&
         std::ranges::all_of(graph.nodes(), [](const Node& n) { return n.op->is(Trait::pure); });
}

std::vector<ValueId> splice(Graph& to, const Graph& what, std::span<const ValueId> inputs) {
  std::vector<ValueId> now(static_cast<size_t>(what.value_count()), kNoValue);
  const auto mapped = [&](std::span<const ValueId> values) {
    std::vector<ValueId> result;
    for (ValueId v : values) result.push_back(v == kNoValue ? v : now[static_cast<size_t>(v)]);
    return result;
  };
  const Graph::Texts own(to, what);
  for (size_t i = 0; i < inputs.size(); ++i) now[static_cast<size_t>(what.inputs()[i].value)] = inputs[i];
  for (const Node& node : what.nodes()) {
    std::vector<TensorType> types;
    for (int r = 0; r < node.results; ++r) types.push_back(what.type(node.first_result + r));
    Origin origin;
    if (node.origin >= 0) {
      origin = what.origin(node.origin);
      origin = {own(origin.op), origin.ordinal, own(origin.part)};
    }
    const int32_t at = node.origin < 0 ? -1 : to.add_origin(origin);
    Node& made = to.append(*node.op, mapped(what.operands(node)), node.attrs, types);
    made.origin = at;
    made.where = node.where;
    if (made.where.file) made.where.file = own(made.where.file).data();
    for (int r = 0; r < node.results; ++r)
      now[static_cast<size_t>(node.first_result + r)] = made.first_result + r;
  }
  return mapped(what.outputs());
}

}  // namespace retrograd::ir
