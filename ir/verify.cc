// See ir/verify.h.
#include "ir/verify.h"

#include <fmt/format.h>

#include "ir/type_check.h"

namespace retrograd::ir {
namespace {

// The first symbol of an attribute struct that the table does not have.
class SymbolFinder final : public AttrVisitor {
 public:
  explicit SymbolFinder(int32_t size) : size_(size) {}
  int32_t unknown = -1;
  void field(std::string_view, bool&) override {}
  void field(std::string_view, int64_t&) override {}
  void field(std::string_view, Dim& v) override { see(v); }
  void field(std::string_view, Scalar& v) override { if (v.is_symbolic() && v.id() >= size_) unknown = v.id(); }
  void field(std::string_view, Shape& v) override { for (Dim d : v) see(d); }
  void field(std::string_view, IntList&) override {}
  void field(std::string_view, ScalarType&) override {}

  void see(Dim d) { if (d.is_symbolic() && d.id() >= size_) unknown = d.id(); }

 private:
  int32_t size_;
};

class Verifier {
 public:
  explicit Verifier(const Graph& graph)
      : graph_(graph), symbols_(graph.symbols), scope_(&symbols_), checker_(graph), given_(static_cast<size_t>(graph.value_count())) {}

  void run() {
    for (const TensorType& type : graph_.types())
      for (Dim d : type.shape) check_symbol(d);
    for (size_t i = 0; i < graph_.inputs().size(); ++i) check_input(i);
    for (node_ = 0; node_ < graph_.nodes().size(); ++node_) check_node(graph_.nodes()[node_]);
    for (ValueId v : graph_.outputs())
      if (v != kNoValue && !is_given(v)) fail(fmt::format("the output %{} is no value", v));
  }

 private:
  static constexpr size_t kHeader = ~size_t{0};

  [[noreturn]] void fail(std::string_view problem) const {
    const std::string place = node_ < graph_.nodes().size() ? fmt::format(", node {} ({})", node_, graph_.nodes()[node_].op->name) : "";
    throw InternalError(fmt::format("graph {}{}: {}", graph_.name, place, problem));
  }
  bool is_given(ValueId v) const { return v >= 0 && v < graph_.value_count() && given_[static_cast<size_t>(v)]; }

  void check_symbol(Dim d) const {
    if (!d.is_symbolic()) return;
    if (d.id() >= graph_.symbols.size()) fail(fmt::format("a type has symbol {}, the graph has {}", d.id(), graph_.symbols.size()));
    if (symbols_.expr(d.id()).hint.kind != Number::Kind::Int) fail(fmt::format("the size {} is no integer", to_string(d)));
  }

  void give(ValueId v, std::string_view by) {
    if (v < 0 || v >= graph_.value_count()) fail(fmt::format("{} gives %{}, the graph has {} values", by, v, graph_.value_count()));
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
    if (input.type.dtype == ScalarType::Undefined || !same_type(input.type, graph_.type(input.value)))
      fail(fmt::format("input {} and its value are of different types", i));
  }

  void check_node(const Node& node) {
    for (ValueId v : graph_.operands(node))
      if (v != kNoValue && !is_given(v))
        fail(v < 0 || v >= graph_.value_count() ? fmt::format("there is no operand %{}", v) : fmt::format("%{} is used before it is given", v));
    for (int i = 0; i < node.results; ++i) give(node.first_result + i, "the node");
    if (node.attrs && node.op->visit_attrs) {
      SymbolFinder finder(graph_.symbols.size());
      node.op->visit_attrs(node.attrs, finder);
      if (finder.unknown >= 0) fail(fmt::format("an attribute has symbol {}, the graph has {}", finder.unknown, graph_.symbols.size()));
    }
    const std::string problem = checker_.problem(node);
    if (!problem.empty()) fail(problem);
    if (symbols_.guards().size() > graph_.symbols.guards().size()) {
      const SymbolTable::Guard& g = symbols_.guards().back();
      fail(fmt::format("its type rule compares {} and {}, and no guard of the graph does", symbols_.text(g.lhs), symbols_.text(g.rhs)));
    }
  }

  const Graph& graph_;
  SymbolTable symbols_;
  SymbolTable::Scope scope_;
  TypeChecker checker_;
  std::vector<uint8_t> given_;
  size_t node_ = kHeader;  // the one that is checked; none while in the header, and at the end
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace retrograd::ir
