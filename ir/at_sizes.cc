// Graph::at_sizes: see ir/graph.h.
#include "engine/each_field.h"
#include "ir/graph.h"
#include "ir/replay.h"

namespace retrograd::inline v0::ir {

Graph Graph::at_sizes(std::span<const Number> values, int32_t sizes) const {
  Graph to = copy();
  to.types_.clear();
  to.type_index_.clear();
  to.last_type_ = -1;
  std::vector<int32_t> index;  // of the types that there were
  for (const TensorType& type : types_) index.push_back(to.intern(concrete_type(type, values)));
  for (int32_t& type : to.value_types_) type = index[static_cast<size_t>(type)];
  for (Input& input : to.inputs_)
    if (input.type >= 0) input.type = index[static_cast<size_t>(input.type)];
  for (const Node& node : to.nodes_)
    for_each_field(*node.op, node.attrs,
                   Fields{[&](auto, Dim& d) { d = concrete_dim(d, values); },
                          [&](auto, Shape& shape) {
                            for (int i = 0; i < shape.rank(); ++i) shape[i] = concrete_dim(shape[i], values);
                          },
                          [&](auto, Scalar& s) {
                            if (s.is_symbolic() && symbols.expr(s.id()).last_symbol < sizes)
                              s = values[static_cast<size_t>(s.id())];
                          }});
  to.symbols = symbols_at(values, sizes);
  return to;
}

SymbolTable Graph::symbols_at(std::span<const Number> values, int32_t sizes) const {
  return symbols.symbol_count() == sizes ? SymbolTable() : symbols.at(values);
}

}  // namespace retrograd::ir
