// See ir/verify.h.
#include "ir/verify.h"

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>

#include "engine/each_field.h"
#include "ir/type_check.h"

namespace retrograd::inline v0::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph)
      : graph_(graph),
        symbols_(graph.symbols),
        scope_(&symbols_),
        checker_(graph),
        given_(static_cast<size_t>(graph.value_count())) {}

  void run() {
    for (const TensorType& type : graph_.types())
      for (Dim d : type.shape) check_size(d);
    for (size_t i = 0; i < graph_.inputs().size(); ++i) check_input(i);
    for (node_ = 0; node_ < graph_.nodes().size(); ++node_) check_node(graph_.nodes()[node_]);
    for (ValueId v : graph_.outputs())
      if (v != kNoValue && !is_given(v)) fail(fmt::format("the output %{} is not a value", v));
  }

 private:
  static constexpr size_t kHeader = ~size_t{0};

  [[noreturn]] void fail(std::string_view problem) const {
    const std::string place = node_ < graph_.nodes().size()
                                  ? fmt::format(", node {} ({})", node_, graph_.nodes()[node_].op->name)
                                  : "";
    throw InternalError(fmt::format("graph {}{}: {}", graph_.name, place, problem));
  }
  bool is_given(ValueId v) const {
    return v >= 0 && v < graph_.value_count() && given_[static_cast<size_t>(v)];
  }

  void check_symbol_id(int32_t id) const {
    if (id >= graph_.symbols.size())
      fail(fmt::format("there is no symbol {}, the graph has {}", id, graph_.symbols.size()));
  }
  void check_symbol(Dim d) const {
    if (!d.is_symbolic()) return;
    check_symbol_id(d.id());
    if (symbols_.expr(d.id()).hint.kind != Number::Kind::Int)
      fail(fmt::format("the size {} is not an integer", to_string(d)));
  }

  void check_size(Dim d) const {
    check_symbol(d);
    if (d.hint() < 0) fail(fmt::format("the size {} is negative", to_string(d)));
  }

  void give(ValueId v, std::string_view by) {
    if (v < 0 || v >= graph_.value_count())
      fail(fmt::format("{} gives %{}, the graph has {} values", by, v, graph_.value_count()));
    if (given_[static_cast<size_t>(v)]) fail(fmt::format("{} gives %{} a second time", by, v));
    given_[static_cast<size_t>(v)] = 1;
  }

  void check_input(size_t i) {
    const Input& input = graph_.inputs()[i];
    if (input.kind != Input::Kind::tensor) {
      if (input.value != kNoValue) fail(fmt::format("input {} is a handle and a value", i));
      return;
    }
    give(input.value, "an input");
    if (graph_.type(input).dtype == ScalarType::Undefined ||
        !same_type(graph_.type(input), graph_.type(input.value)))
      fail(fmt::format("input {} and its value are of different types", i));
  }

  void check_group(const Node& node) {
    const bool goes_on = node_ > 0 && graph_.nodes()[node_ - 1].group == node.group;
    if (node.group >= 0 && !goes_on && node.group <= last_group_)
      fail(fmt::format("group {} comes after group {}", node.group, last_group_));
    if (node.group >= 0 && !may_be_in_group(node))
      fail("a node of a group is pure and has one result, or updates its operands");
    last_group_ = std::max(last_group_, node.group);
  }

  void check_node(const Node& node) {
    for (ValueId v : graph_.operands(node))
      if (v != kNoValue && !is_given(v))
        fail(v < 0 || v >= graph_.value_count() ? fmt::format("there is no operand %{}", v)
                                                : fmt::format("%{} is used before it is given", v));
    for (int i = 0; i < node.results; ++i) give(node.first_result + i, "the node");
    check_group(node);
    for_each_field(*node.op, node.attrs, [&](std::string_view, auto& field) {
      if constexpr (std::is_same_v<decltype(field), Dim&>)
        check_symbol(field);
      else if constexpr (std::is_same_v<decltype(field), Shape&>)
        std::ranges::for_each(field, [&](Dim d) { check_symbol(d); });
      else if constexpr (std::is_same_v<decltype(field), Scalar&>)
        check_symbol_id(field.id());
    });
    const std::string problem = checker_.problem(node);
    if (!problem.empty()) fail(problem);
    if (symbols_.guards().size() > graph_.symbols.guards().size()) {
      const SymbolTable::Guard& g = symbols_.guards().back();
      fail(fmt::format("its type rule compares {} and {}, and no guard of the graph does",
                       symbols_.text(g.lhs), symbols_.text(g.rhs)));
    }
  }

  const Graph& graph_;
  SymbolTable symbols_;
  SymbolTable::Scope scope_;
  TypeChecker checker_;
  std::vector<uint8_t> given_;
  int32_t last_group_ = -1;
  size_t node_ = kHeader;  // the node being checked; none while in the header, and at the end
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace retrograd::ir
