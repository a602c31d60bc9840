// See tracer/function/twin.h.
#include "tracer/function/twin.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include <fmt/format.h>

#include "ir/text.h"

namespace retrograd::inline v0 {
namespace {

std::string place(const ir::Node& node) { return node.where ? to_string(node.where) : "an unknown line"; }

std::string text_of(const ir::Graph& graph, const ir::Node& node) {
  const SymbolTable::Scope symbols(const_cast<SymbolTable*>(&graph.symbols));
  return ir::to_string(graph, node);
}
std::string attrs_of(const ir::Graph& graph, const ir::Node& node) {
  const SymbolTable::Scope symbols(const_cast<SymbolTable*>(&graph.symbols));
  return ir::attrs_text(*node.op, node.attrs);
}

// Constants that the function makes, and cells for memory that it writes to, are other objects in each recording.
bool is_same_tensor(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.is_same(b)) return true;
  if (!(TensorGuard(a.impl()) == TensorGuard(b.impl()))) return false;
  if (a.impl().data() == b.impl().data()) return true;
  const auto here = [](const Tensor& t) {
    return (t.device() == kCPU ? t.detach() : t.detach().to(kCPU)).contiguous();
  };
  const NoGradGuard no_grad;
  const Tensor x = here(a), y = here(b);
  return x.numel() == 0 || std::memcmp(x.raw_data(), y.raw_data(), static_cast<size_t>(x.nbytes())) == 0;
}

bool is_same_input(const RecordedFunction::Input& a, const RecordedFunction::Input& b) {
  return a.argument == b.argument && a.base_of == b.base_of && a.saved == b.saved &&
         is_same_tensor(a.captured, b.captured) && a.grad_of == b.grad_of &&
         a.grad_of_argument == b.grad_of_argument && a.leaf == b.leaf;
}

// Values that are inputs of both graphs and bound differently; how, in words.
using OtherInputs = std::unordered_map<ir::ValueId, std::string>;

OtherInputs other_inputs(const RecordedFunction& was, const RecordedFunction& is) {
  OtherInputs others;
  const auto name = [](const Tensor& t) { return t.defined() ? describe(t) : std::string("another input"); };
  for (size_t i = 0; i < std::min(was.inputs.size(), is.inputs.size()); ++i) {
    const ir::Input& input = was.graph.inputs()[i];
    if (input.kind != ir::Input::Kind::tensor || is_same_input(was.inputs[i], is.inputs[i])) continue;
    others[input.value] = fmt::format("another tensor from outside, {}, where the recording has {}",
                                      name(is.inputs[i].captured), name(was.inputs[i].captured));
  }
  return others;
}

bool calls_code(const ir::Node& node) { return node.op->is(Trait::effect) && node.op->run_on_host; }

std::string difference_of_node(const ir::Graph& was, const ir::Node& a, const ir::Graph& is,
                               const ir::Node& b, const OtherInputs& others) {
  if (a.op != b.op && calls_code(b) != calls_code(a))
    return calls_code(b) ? "it calls user code that it did not call"
                         : "it does not call user code that it called";
  if (a.op != b.op)
    return fmt::format("{} at {} is where the recording has {} at {}", b.op->name, place(b), a.op->name,
                       place(a));
  const auto of = [&](const std::string& what) {
    return fmt::format("{} at {} has {}", b.op->name, place(b), what);
  };
  if (const std::string now = attrs_of(is, b), before = attrs_of(was, a); now != before)
    return of(fmt::format("{{{}}} where the recording has {{{}}}", now, before));
  const std::span<const ir::ValueId> x = was.operands(a), y = is.operands(b);
  for (size_t i = 0; i < x.size() && i < y.size(); ++i)
    if (const auto other = others.find(x[i]); x[i] == y[i] && other != others.end()) return of(other->second);
  const std::string now = text_of(is, b), before = text_of(was, a);
  if (!std::ranges::equal(x, y) || now != before)
    return of(fmt::format("other operands: {} where the recording has {}", now, before));
  return {};
}

std::string difference_of(const ir::Graph& was, const ir::Graph& is, const OtherInputs& others) {
  const std::vector<ir::Node>&a = was.nodes(), &b = is.nodes();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (std::string text = difference_of_node(was, a[i], is, b[i], others); !text.empty()) return text;
  if (a.size() < b.size())
    return fmt::format("{} at {} follows, where the recording ends", b[a.size()].op->name,
                       place(b[a.size()]));
  if (b.size() < a.size())
    return fmt::format("{} at {} of the recording is missing", a[b.size()].op->name, place(a[b.size()]));
  return was.outputs() == is.outputs() ? "" : "the results are other values";
}

bool is_same_result(const ResultBinding& a, const ResultBinding& b) {
  return a.location.input == b.location.input && a.location.output == b.location.output &&
         a.argument == b.argument && a.grad_of == b.grad_of && a.grad == b.grad &&
         is_same_tensor(a.outside, b.outside) && a.same_as == b.same_as &&
         a.is_differentiable == b.is_differentiable && a.is_leaf == b.is_leaf && a.base == b.base &&
         a.base_argument == b.base_argument && is_same_tensor(a.base_outside, b.base_outside) &&
         a.rewrites == b.rewrites && a.rewrites_base == b.rewrites_base;
}

// What a run does besides the operations of its graph.
std::string difference_of_effects(const FunctionCapture& recorded, const FunctionCapture& twin) {
  const FunctionResults &was = recorded.results(), &is = twin.results();
  if (was.given() != is.given())
    return fmt::format("{} results where the recording has {}", is.given(), was.given());
  for (size_t i = 0; i < std::min(was.size(), is.size()); ++i)
    if (!is_same_result(was[i], is[i])) return fmt::format("result {} is another tensor", i);
  if (was.size() != is.size()) return "other tensors are changed";
  const RecordedFunction &a = recorded.recorded(), &b = twin.recorded();
  const auto same_grad = [](const auto& x, const auto& y) {
    return x.leaf == y.leaf && x.argument == y.argument && x.after == y.after &&
           x.location.output == y.location.output;
  };
  if (!std::ranges::equal(a.grads, b.grads, same_grad)) return "another .grad is set";
  const auto same_write = [](const auto& x, const auto& y) {
    return x.input == y.input && x.output == y.output;
  };
  return std::ranges::equal(a.writes, b.writes, same_write) ? "" : "other tensors are written to";
}

}  // namespace

std::string difference_of_twin(const SizedFunction& recorded, FunctionCapture& twin) {
  const RecordedFunction &was = recorded.capture().recorded(), &is = twin.recorded();
  std::string text = difference_of(was.graph, is.graph, other_inputs(was, is));
  if (text.empty()) text = difference_of_effects(recorded.capture(), twin);
  if (!text.empty()) return text;
  // One backward is recorded at first, for all results, if that is no error.
  const RecordedFunction* const backward = recorded.recorded_backward();
  const RecordedBackwards of_twin = twin.take_backwards();
  if (!backward || of_twin.size() != 1) return {};
  const RecordedFunction& other = of_twin.begin()->second->recorded;
  text = difference_of(backward->graph, other.graph, {});
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
