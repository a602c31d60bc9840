// See ir/rewriter.h.
#include "ir/rewriter.h"

#include <numeric>

namespace retrograd::inline v0::ir {

Remap Remap::identity(const Graph& graph) {
  Remap remap;
  remap.nodes.resize(graph.nodes().size());
  std::iota(remap.nodes.begin(), remap.nodes.end(), 0);
  remap.values.resize(static_cast<size_t>(graph.value_count()));
  std::iota(remap.values.begin(), remap.values.end(), 0);
  remap.places.resize(graph.nodes().size() + 1);
  std::iota(remap.places.begin(), remap.places.end(), 0);
  return remap;
}

void Remap::then(const Remap& next) {
  for (int32_t& node : nodes)
    if (node >= 0) node = next.nodes[static_cast<size_t>(node)];
  for (ValueId& value : values)
    if (value != kNoValue) value = next.values[static_cast<size_t>(value)];
  for (int32_t& place : places) place = next.places[static_cast<size_t>(place)];
}

Rewriter::Rewriter(Graph& graph) : graph_(graph) {
  remap_.nodes.assign(graph.nodes().size(), -1);
  remap_.values.assign(static_cast<size_t>(graph.value_count()), kNoValue);
  nodes_.reserve(graph.nodes().size());
  pool_.reserve(graph.pool_.size());
  types_.reserve(remap_.values.size());
  for (const Input& input : graph.inputs()) {
    if (input.kind != Input::Kind::tensor) continue;
    remap_.values[static_cast<size_t>(input.value)] = value_count();
    types_.push_back(input.type);
  }
}

Node& Rewriter::add(Node node, std::span<const ValueId> operands) {
  node.first_operand = static_cast<uint32_t>(pool_.size());
  node.operands = static_cast<uint16_t>(operands.size());
  node.first_result = value_count();
  for (ValueId v : operands) {
    RG_ASSERT(v == kNoValue || (v >= 0 && v < value_count()));
    pool_.push_back(v);
  }
  nodes_.push_back(node);
  return nodes_.back();
}

const Node& Rewriter::keep(size_t index) {
  mapped_.clear();
  for (ValueId v : graph_.operands(graph_.nodes()[index])) {
    mapped_.push_back(now(v));
    RG_ASSERT(v == kNoValue || mapped_.back() != kNoValue);
  }
  return keep(index, mapped_);
}

const Node& Rewriter::keep(size_t index, std::span<const ValueId> operands) {
  const Node& old = graph_.nodes()[index];
  remap_.nodes[index] = static_cast<int32_t>(nodes_.size());
  const Node& node = add(old, operands);
  for (int i = 0; i < old.results; ++i) {
    remap_.values[static_cast<size_t>(old.first_result + i)] = value_count();
    types_.push_back(graph_.type_index(old.first_result + i));
  }
  return node;
}

void Rewriter::replace(ValueId old, ValueId now) {
  RG_ASSERT(now >= 0 && now < value_count() && same_type(graph_.type(old), type(now)));
  remap_.values[static_cast<size_t>(old)] = now;
}

const Node& Rewriter::append(const OpInfo& op, std::span<const ValueId> operands, const void* attrs,
                             std::span<const TensorType> results, const Node& like) {
  Node node{};
  node.op = &op;
  node.results = static_cast<uint16_t>(results.size());
  node.handle = -1;
  node.attrs = graph_.copy_attrs(op, attrs);
  node.where = like.where;
  node.origin = like.origin;
  const Node& added = add(node, operands);
  for (const TensorType& type : results) types_.push_back(graph_.intern(type));
  return added;
}

Remap Rewriter::finish() {
  int32_t place = 0;
  for (size_t i = 0; i < remap_.nodes.size(); ++i) {
    remap_.places.push_back(place);
    if (remap_.nodes[i] >= 0 && !graph_.nodes()[i].op->is(Trait::pure)) place = remap_.nodes[i] + 1;
  }
  remap_.places.push_back(place);
  graph_.input_values_.clear();
  for (Input& input : graph_.inputs_)
    if (input.kind == Input::Kind::tensor) graph_.input_values_.push_back(input.value = now(input.value));
  for (ValueId& output : graph_.outputs_) {
    RG_ASSERT(output == kNoValue || now(output) != kNoValue);
    output = now(output);
  }
  graph_.nodes_ = std::move(nodes_);
  graph_.pool_ = std::move(pool_);
  graph_.value_types_ = std::move(types_);
  return std::move(remap_);
}

}  // namespace retrograd::ir
