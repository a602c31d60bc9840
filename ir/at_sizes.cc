// Graph::at_sizes: see ir/graph.h.
#include "engine/each_field.h"
#include "ir/graph.h"
#include "ir/replay.h"

namespace retrograd::inline v0::ir {
namespace {

// For each expression, whether it depends on a symbol other than the first ones.
std::vector<bool> that_vary(const SymbolTable& symbols, int32_t fixed) {
  std::vector<bool> varies(static_cast<size_t>(symbols.size()));
  for (int32_t id = 0; id < symbols.size(); ++id) {
    const SymbolTable::Expr& e = symbols.expr(id);
    if (e.op == Arith::symbol)
      varies[static_cast<size_t>(id)] = e.rhs >= fixed;
    else if (e.op != Arith::constant)
      varies[static_cast<size_t>(id)] =
          varies[static_cast<size_t>(e.lhs)] || (e.rhs >= 0 && varies[static_cast<size_t>(e.rhs)]);
  }
  return varies;
}

}  // namespace

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
  const auto size_of = [&](Dim& d) {
    if (d.is_symbolic()) d = values[static_cast<size_t>(d.id())].as_int();
  };
  const std::vector<bool> varies = that_vary(symbols, sizes);
  for (const Node& node : to.nodes_)
    for_each_field(*node.op, node.attrs,
                   Fields{[&](auto, Dim& d) { size_of(d); },
                          [&](auto, Shape& shape) {
                            for (int i = 0; i < shape.rank(); ++i) size_of(shape[i]);
                          },
                          [&](auto, Scalar& s) {
                            if (s.is_symbolic() && !varies[static_cast<size_t>(s.id())])
                              s = values[static_cast<size_t>(s.id())];
                          }});
  to.symbols = symbols.symbol_count() == sizes ? SymbolTable() : symbols.at(values);
  return to;
}

}  // namespace retrograd::ir
