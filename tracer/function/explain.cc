// See tracer/function/explain.h.
#include "tracer/function/explain.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

namespace retrograd::inline v0 {
namespace {

// The numbers among a node's attributes that are used and are not symbols.
class FixedNumbers final : public AttrVisitor {
 public:
  /// Without `operand`, the number that stands for a missing operand is not used.
  explicit FixedNumbers(bool operand) : operand_(operand) {}
  std::string text;
  void field(std::string_view, bool&) override {}
  void field(std::string_view, int64_t&) override {}
  void field(std::string_view, Dim&) override {}
  void field(std::string_view name, Scalar& v) override {
    if (!v.is_symbolic() && (operand_ || name != "scalar")) text += fmt::format(" {}={}", name, to_string(v));
  }
  void field(std::string_view, Shape&) override {}
  void field(std::string_view, IntList&) override {}
  void field(std::string_view, ScalarType&) override {}
  void field(std::string_view, Device&) override {}

 private:
  const bool operand_;
};

std::string arguments_text(const FunctionCapture& capture) {
  const SymbolTable::Scope symbols(const_cast<SymbolTable*>(&capture.recorded().graph.symbols));
  std::string text;
  const std::vector<TensorGuard>& given = capture.guards().call().arguments;
  for (size_t i = 0; i < given.size(); ++i)
    text += (i ? ", " : "") + to_string(capture.sizes().count() ? capture.sizes().type(i) : given[i].type);
  return text.empty() ? "none" : text;
}

// The lines of a list, each once.
std::string list_of(const std::vector<std::string>& lines) {
  std::string text;
  std::unordered_set<std::string_view> seen;
  for (const std::string& line : lines)
    if (seen.insert(line).second) text += "  " + line + "\n";
  return text;
}

// The first node that uses a value; null if none does.
const ir::Node* first_user(const ir::Graph& graph, ir::ValueId value) {
  const auto uses = [&](const ir::Node& node) { return std::ranges::count(graph.operands(node), value) > 0; };
  const auto it = std::ranges::find_if(graph.nodes(), uses);
  return it == graph.nodes().end() ? nullptr : &*it;
}

}  // namespace

std::string given_gradients(const ir::Graph& graph, const std::vector<RecordedFunction::Input>& inputs) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].grad_of && inputs[i].grad_of_argument < 0) continue;
    const ir::ValueId value = graph.inputs()[i].value;
    if (const ir::Node* const user = first_user(graph, value))
      text += fmt::format(
          "{}.grad of a leaf, {}, used by {} at {}, is given to each run: its memory is not planned",
          text.empty() ? "" : "\n", to_string(graph.type(value)), user->op->name, to_string(user->where));
  }
  return text;
}

std::string explanation_of(const FunctionCapture& capture, std::string_view fixed_because) {
  const RecordedFunction& recorded = capture.recorded();
  const ir::Graph& graph = recorded.graph;
  std::string text = fmt::format("recorded for the call at {}, {} nodes\narguments: {}\n",
                                 to_string(capture.where()), graph.nodes().size(), arguments_text(capture));
  if (!fixed_because.empty()) text += fmt::format("sizes are never symbols: {}\n", fixed_because);
  if (!graph.symbols.guards().empty()) {
    text += "recorded again unless:\n";
    std::vector<std::string> guards;
    for (const SymbolTable::Guard& g : graph.symbols.guards()) guards.push_back(graph.symbols.text(g));
    text += list_of(guards);
  }
  int live = capture.sizes().live_count();
  for (const RecordedFunction::Numbers& n : recorded.numbers) live += n.count;
  const auto outside =
      std::ranges::count_if(recorded.inputs, [](const auto& i) { return i.captured != nullptr; });
  text += fmt::format("read at each run: {} numbers, {} tensors from outside\n", live, outside);
  std::vector<std::string> numbers;
  for (const ir::Node& node : graph.nodes()) {
    FixedNumbers fixed(std::ranges::count(graph.operands(node), ir::kNoValue) > 0);
    if (node.attrs && node.op->visit_attrs) node.op->visit_attrs(node.attrs, fixed);
    if (!fixed.text.empty())
      numbers.push_back(fmt::format("{}: {}{}", to_string(node.where), node.op->name, fixed.text));
  }
  if (!numbers.empty()) text += "fixed numbers:\n" + list_of(numbers);
  return text;
}

}  // namespace retrograd
