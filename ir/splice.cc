// See ir/splice.h.
#include "ir/splice.h"

#include <algorithm>

namespace retrograd::inline v0::ir {
namespace {

// Copies inputs and nodes of one graph to the end of another.
class Splicer {
 public:
  Splicer(Graph& to, const Graph& from)
      : to_(to), from_(from), own_(to, from), now_(static_cast<size_t>(from.value_count()), kNoValue) {
    for (const Node& node : to.nodes()) groups_ = std::max(groups_, node.group + 1);
  }

  /// The value of `to` for one of `from`; kNoValue if it has none.
  ValueId now(ValueId v) const { return v == kNoValue ? v : now_[static_cast<size_t>(v)]; }
  void replace(ValueId v, ValueId now) { now_[static_cast<size_t>(v)] = now; }

  void add_input(size_t number) {
    const Input& input = from_.inputs()[number];
    handles_.resize(from_.inputs().size(), -1);
    handles_[number] = static_cast<int32_t>(to_.inputs().size());
    if (input.kind == Input::Kind::tensor)
      replace(input.value, to_.add_tensor_input(from_.type(input.value)));
    else
      to_.add_handle(input.kind, from_.type(input));
  }

  void add_node(const Node& node) {
    std::vector<TensorType> types;
    for (int r = 0; r < node.results; ++r) types.push_back(from_.type(node.first_result + r));
    Origin origin;
    if (node.origin >= 0) {
      origin = from_.origin(node.origin);
      origin = {own_(origin.op), origin.ordinal, own_(origin.part)};
    }
    const int32_t at = node.origin < 0 ? -1 : to_.add_origin(origin);
    Node& made = to_.append(*node.op, values(from_.operands(node)), node.attrs, types);
    made.origin = at;
    made.where = node.where;
    if (made.where.file) made.where.file = own_(made.where.file).data();
    if (node.handle >= 0) made.handle = handles_[static_cast<size_t>(node.handle)];
    if (node.group >= 0) made.group = groups_ + node.group;
    for (int r = 0; r < node.results; ++r) replace(node.first_result + r, made.first_result + r);
  }

  std::vector<ValueId> values(std::span<const ValueId> of_from) const {
    std::vector<ValueId> found;
    for (ValueId v : of_from) found.push_back(now(v));
    return found;
  }

 private:
  Graph& to_;
  const Graph& from_;
  const Graph::Texts own_;
  std::vector<ValueId> now_;
  std::vector<int32_t> handles_;  // of each input: its number in `to`
  int32_t groups_ = 0;            // the number of the first group
};

}  // namespace

bool can_be_spliced(const Graph& graph) {
  return graph.symbols.size() == 0 &&
         std::ranges::all_of(graph.inputs(), [](const Input& i) { return i.kind == Input::Kind::tensor; }) &&
         std::ranges::all_of(graph.nodes(), [](const Node& n) { return n.op->is(Trait::pure); });
}

std::vector<ValueId> splice(Graph& to, const Graph& what, std::span<const ValueId> inputs) {
  Splicer splicer(to, what);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] == kNoValue)
      splicer.add_input(i);
    else
      splicer.replace(what.inputs()[i].value, inputs[i]);
  for (const Node& node : what.nodes()) splicer.add_node(node);
  return splicer.values(what.outputs());
}

Cut cut(const Graph& graph, const Boundary& boundary) {
  Cut made;
  Splicer first(made.first, graph), second(made.second, graph);
  for (size_t i = 0; i < graph.inputs().size(); ++i) (i < boundary.inputs ? first : second).add_input(i);
  const std::span<const Node> nodes = graph.nodes();
  const std::span<const ValueId> outputs = graph.outputs();
  for (const Node& node : nodes.first(boundary.nodes)) first.add_node(node);
  const auto pass = [&](std::span<const ValueId> values) {
    for (ValueId v : values)
      if (first.now(v) != kNoValue && second.now(v) == kNoValue) {
        made.passed.push_back(first.now(v));
        second.replace(v, made.second.add_tensor_input(graph.type(v)));
      }
  };
  for (const Node& node : nodes.subspan(boundary.nodes)) pass(graph.operands(node));
  pass(outputs.subspan(boundary.outputs));
  for (const Node& node : nodes.subspan(boundary.nodes)) second.add_node(node);
  made.first.set_outputs(first.values(outputs.first(boundary.outputs)));
  made.second.set_outputs(second.values(outputs.subspan(boundary.outputs)));
  return made;
}

}  // namespace retrograd::ir
