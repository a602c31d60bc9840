// See tracer/function/twin.h.
#include "tracer/function/twin.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "ir/text.h"

namespace retrograd::inline v0 {
namespace {

std::string place(const ir::Node& node) { return node.where ? to_string(node.where) : "an unknown line"; }

// A graph with what its inputs are bound to.
struct Bound {
  const ir::Graph& graph;
  const std::vector<RecordedFunction::Input>* inputs;  // null: not compared

  std::string text(const ir::Node& node) const {
    const SymbolTable::Scope symbols(const_cast<SymbolTable*>(&graph.symbols));
    return ir::to_string(graph, node);
  }
  std::string attrs(const ir::Node& node) const {
    const SymbolTable::Scope symbols(const_cast<SymbolTable*>(&graph.symbols));
    return ir::attrs_text(*node.op, node.attrs);
  }
};

// Memory that is written to is bound by cells that each recording makes.
bool is_same_tensor(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  return !a.defined() || a.is_same(b) ||
         (a.impl().storage() == b.impl().storage() && a.impl().data() == b.impl().data() &&
          TensorGuard(a.impl()) == TensorGuard(b.impl()));
}

bool is_same_input(const RecordedFunction::Input& a, const RecordedFunction::Input& b) {
  return a.argument == b.argument && a.base_of == b.base_of && a.saved == b.saved &&
         is_same_tensor(a.captured, b.captured) && a.grad_of == b.grad_of &&
         a.grad_of_argument == b.grad_of_argument && a.leaf == b.leaf;
}

// The inputs that are other tensors in the twin, as values; and the tensors.
std::string difference_of_operand(const Bound& was, const Bound& is, ir::ValueId value) {
  if (!was.inputs) return {};
  const std::vector<ir::Input>& all = was.graph.inputs();
  for (size_t i = 0; i < all.size() && i < is.graph.inputs().size(); ++i) {
    if (all[i].kind != ir::Input::Kind::tensor || all[i].value != value) continue;
    if (is_same_input((*was.inputs)[i], (*is.inputs)[i])) return {};
    const Tensor &before = (*was.inputs)[i].captured, &now = (*is.inputs)[i].captured;
    const auto name = [](const Tensor& t) {
      return t.defined() ? describe(t) : std::string("another input");
    };
    return fmt::format("another tensor from outside, {}, where the recording has {}", name(now),
                       name(before));
  }
  return {};
}

std::string difference_of_node(const Bound& was, const ir::Node& a, const Bound& is, const ir::Node& b) {
  if (a.op != b.op)
    return fmt::format("{} at {} is where the recording has {} at {}", b.op->name, place(b), a.op->name,
                       place(a));
  const auto of = [&](const std::string& what) {
    return fmt::format("{} at {} has {}", b.op->name, place(b), what);
  };
  if (const std::string now = is.attrs(b), before = was.attrs(a); now != before)
    return of(fmt::format("{{{}}} where the recording has {{{}}}", now, before));
  const std::span<const ir::ValueId> x = was.graph.operands(a), y = is.graph.operands(b);
  for (size_t i = 0; i < x.size() && i < y.size(); ++i)
    if (const std::string other = x[i] == y[i] ? difference_of_operand(was, is, x[i]) : std::string();
        !other.empty())
      return of(other);
  if (!std::ranges::equal(x, y) || is.text(b) != was.text(a))
    return of(fmt::format("other operands: {} where the recording has {}", is.text(b), was.text(a)));
  return {};
}

std::string difference_of(const Bound& was, const Bound& is) {
  const std::vector<ir::Node>&a = was.graph.nodes(), &b = is.graph.nodes();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (std::string text = difference_of_node(was, a[i], is, b[i]); !text.empty()) return text;
  if (a.size() < b.size())
    return fmt::format("{} at {} follows, where the recording ends", b[a.size()].op->name,
                       place(b[a.size()]));
  if (b.size() < a.size())
    return fmt::format("{} at {} of the recording is missing", a[b.size()].op->name, place(a[b.size()]));
  if (was.graph.outputs() != is.graph.outputs()) return "the results are other values";
  for (ir::ValueId output : was.graph.outputs())
    if (std::string text = difference_of_operand(was, is, output); !text.empty())
      return "a result is " + text;
  return {};
}

}  // namespace

std::string difference_of_twin(const SizedFunction& recorded, const SizedFunction& twin) {
  const RecordedFunction &was = recorded.capture().recorded(), &is = twin.capture().recorded();
  if (std::string text = difference_of({was.graph, &was.inputs}, {is.graph, &is.inputs}); !text.empty())
    return text;
  const ir::Graph *const backward = recorded.backward_graph(), *const of_twin = twin.backward_graph();
  if (!backward || !of_twin) return backward == of_twin ? "" : "only one of the two has a backward";
  const std::string text = difference_of({*backward, nullptr}, {*of_twin, nullptr});
  return text.empty() ? text : "in its backward, " + text;
}

int64_t twin_calls_of_environment() {
  const char* const variable = secure_getenv("RETROGRAD_CHECK");
  const std::string_view text = variable ? variable : "";
  if (text.empty()) return 0;
  if (text == "twin") return 1;
  constexpr std::string_view kPrefix = "twin:";
  int64_t calls = 0;
  if (text.starts_with(kPrefix)) {
    const std::string_view number = text.substr(kPrefix.size());
    const auto [end, error] = std::from_chars(number.begin(), number.end(), calls);
    if (error == std::errc() && end == number.end() && calls > 0) return calls;
  }
  fail(Category::bad_argument, "", fmt::format("RETROGRAD_CHECK: '{}' is neither twin nor twin:N", text));
}

}  // namespace retrograd
