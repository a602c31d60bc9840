// See tracer/function/twin.h.
#include "tracer/function/twin.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "ir/text.h"
#include "tracer/observe/checks.h"

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
bool is_same_tensor(TensorImpl* was, TensorImpl* is) {
  if (was == is) return true;
  if (!was || !is || !(TensorGuard(*was) == TensorGuard(*is))) return false;
  if (was->data() == is->data()) return true;
  return has_same_bits(Tensor(RefPtr<TensorImpl>(was)), Tensor(RefPtr<TensorImpl>(is)));
}

bool is_same_input(const RecordedFunction::Input& a, const RecordedFunction::Input& b) {
  return a.argument == b.argument && a.base_of == b.base_of && a.saved == b.saved &&
         is_same_tensor(a.captured, b.captured) && a.grad_of == b.grad_of &&
         a.grad_of_argument == b.grad_of_argument && a.leaf == b.leaf;
}

// What is what in the two recordings: inputs are recognised by what they are bound to, since bases of arguments may be
// among them in one recording only, values by the nodes that compute them.
class Counterparts {
 public:
  Counterparts(const RecordedFunction& was, const RecordedFunction& is)
      : values_(static_cast<size_t>(is.graph.value_count()), ir::kNoValue), inputs_(is.inputs.size(), -1) {
    for (size_t i = 0; i < is.inputs.size(); ++i) find_input(was, is, i);
  }
  /// After nodes have been found to be the same.
  void add(const ir::Node& was, const ir::Node& is) {
    for (int r = 0; r < is.results; ++r) of(is.first_result + r) = was.first_result + r;
  }
  /// Of a value and an input of the twin: the recording's.
  ir::ValueId value(ir::ValueId v) const { return v == ir::kNoValue ? v : values_[static_cast<size_t>(v)]; }
  bool are_same(std::span<const ir::ValueId> was, std::span<const ir::ValueId> is) const {
    return std::ranges::equal(was, is, {}, {}, [&](ir::ValueId v) { return value(v); });
  }
  int32_t input(int32_t i) const { return i < 0 ? i : inputs_[static_cast<size_t>(i)]; }
  /// How an input of the twin is bound that has no counterpart; null for other values.
  const std::string* other(ir::ValueId v) const {
    const auto it = others_.find(v);
    return it == others_.end() ? nullptr : &it->second;
  }

 private:
  ir::ValueId& of(ir::ValueId v) { return values_[static_cast<size_t>(v)]; }
  void find_input(const RecordedFunction& was, const RecordedFunction& is, size_t i) {
    const ir::Input& input = is.graph.inputs()[i];
    if (input.kind != ir::Input::Kind::tensor) return;
    const auto is_it = [&](size_t k) {
      return was.graph.inputs()[k].kind == input.kind && is_same_input(was.inputs[k], is.inputs[i]);
    };
    size_t k = i;  // nearly always
    if (k >= was.inputs.size() || !is_it(k))
      for (k = 0; k < was.inputs.size() && !is_it(k);) ++k;
    if (k < was.inputs.size()) {
      of(input.value) = was.graph.inputs()[k].value;
      inputs_[i] = static_cast<int32_t>(k);
      return;
    }
    const auto name = [](const RecordedFunction& of, size_t at) {
      const bool is_captured = at < of.inputs.size() && of.inputs[at].captured;
      return is_captured ? describe(Tensor(RefPtr<TensorImpl>(of.inputs[at].captured)))
                         : std::string("another input");
    };
    others_[input.value] =
        fmt::format("another tensor from outside, {}, where the recording has {}", name(is, i), name(was, i));
  }

  std::vector<ir::ValueId> values_;
  std::vector<int32_t> inputs_;
  std::unordered_map<ir::ValueId, std::string> others_;
};

bool calls_code(const ir::Node& node) { return node.op->is(Trait::effect) && node.op->run_on_host; }

std::string types_of(const ir::Graph& graph, const ir::Node& node) {
  const SymbolTable::Scope symbols(const_cast<SymbolTable*>(&graph.symbols));
  std::string text;
  for (int r = 0; r < node.results; ++r) text += to_string(graph.type(node.first_result + r)) + " ";
  return text;
}

std::string difference_of_node(const ir::Graph& was, const ir::Node& a, const ir::Graph& is,
                               const ir::Node& b, const Counterparts& counterparts) {
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
  for (ir::ValueId v : y)
    if (const std::string* other = counterparts.other(v)) return of(*other);
  if (!counterparts.are_same(x, y) || types_of(was, a) != types_of(is, b))
    return of(fmt::format("other operands: {} where the recording has {}", text_of(is, b), text_of(was, a)));
  return {};
}

// The base of an argument that is a view may get no gradient, or may be none.
std::span<const ir::ValueId> without_last_none(std::span<const ir::ValueId> outputs) {
  while (!outputs.empty() && outputs.back() == ir::kNoValue) outputs = outputs.first(outputs.size() - 1);
  return outputs;
}

std::string difference_of(const ir::Graph& was, const ir::Graph& is, Counterparts& counterparts) {
  const std::vector<ir::Node>&a = was.nodes(), &b = is.nodes();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (std::string text = difference_of_node(was, a[i], is, b[i], counterparts); !text.empty()) return text;
    counterparts.add(a[i], b[i]);
  }
  if (a.size() < b.size())
    return fmt::format("{} at {} follows, where the recording ends", b[a.size()].op->name,
                       place(b[a.size()]));
  if (b.size() < a.size())
    return fmt::format("{} at {} of the recording is missing", a[b.size()].op->name, place(a[b.size()]));
  const bool same = counterparts.are_same(without_last_none(was.outputs()), without_last_none(is.outputs()));
  return same ? "" : "the results are other values";
}

bool is_same_result(const ResultBinding& a, const ResultBinding& b, const Counterparts& counterparts) {
  return a.location.input == counterparts.input(b.location.input) && a.location.output == b.location.output &&
         a.argument == b.argument && a.grad_of == b.grad_of && a.grad == b.grad &&
         is_same_tensor(a.outside, b.outside) && a.same_as == b.same_as &&
         a.is_differentiable == b.is_differentiable && a.is_leaf == b.is_leaf && a.base == b.base &&
         a.base_argument == b.base_argument && is_same_tensor(a.base_outside, b.base_outside) &&
         a.rewrites == b.rewrites && a.rewrites_base == b.rewrites_base;
}

// What a run does besides the operations of its graph.
std::string difference_of_effects(const FunctionCapture& recorded, const FunctionCapture& twin,
                                  const Counterparts& counterparts) {
  const FunctionResults &was = recorded.results(), &is = twin.results();
  if (was.given() != is.given())
    return fmt::format("{} results where the recording has {}", is.given(), was.given());
  for (size_t i = 0; i < std::min(was.size(), is.size()); ++i)
    if (!is_same_result(was[i], is[i], counterparts)) return fmt::format("result {} is another tensor", i);
  if (was.size() != is.size()) return "other tensors are changed";
  const RecordedFunction &a = recorded.recorded(), &b = twin.recorded();
  const auto same_grad = [](const auto& x, const auto& y) {
    return x.leaf == y.leaf && x.argument == y.argument && x.after == y.after &&
           x.location.output == y.location.output;
  };
  if (!std::ranges::equal(a.grads, b.grads, same_grad)) return "another .grad is set";
  const auto same_write = [&](const auto& x, const auto& y) {
    return x.input == counterparts.input(y.input) && x.output == y.output;
  };
  return std::ranges::equal(a.writes, b.writes, same_write) ? "" : "other tensors are written to";
}

}  // namespace

std::string difference_of_twin(const SizedFunction& recorded, FunctionCapture& twin) {
  const RecordedFunction &was = recorded.capture().recorded(), &is = twin.recorded();
  Counterparts counterparts(was, is);
  std::string text = difference_of(was.graph, is.graph, counterparts);
  if (text.empty()) text = difference_of_effects(recorded.capture(), twin, counterparts);
  if (!text.empty()) return text;
  // One backward is recorded at first, for all results, if that is no error.
  const RecordedFunction* const backward = recorded.recorded_backward();
  const RecordedBackwards of_twin = twin.take_backwards();
  if (!backward || of_twin.size() != 1) return {};
  const RecordedFunction& other = of_twin.begin()->second->recorded;
  Counterparts in_backward(*backward, other);
  text = difference_of(backward->graph, other.graph, in_backward);
  return text.empty() ? text : "in its backward, " + text;
}

}  // namespace retrograd
