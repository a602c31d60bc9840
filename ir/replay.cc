// See ir/replay.h.
#include "ir/replay.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/bookkeeping.h"
#include "engine/each_field.h"
#include "ir/input_text.h"

namespace retrograd::inline v0::ir {
namespace {

bool is_bound(Input::Kind kind, const Binding& b) {
  switch (kind) {
    case Input::Kind::tensor: return b.tensor.defined();
    case Input::Kind::slot: return b.record || b.tensor.defined();
    case Input::Kind::leaf: return b.leaf;
    case Input::Kind::hook: return b.hook.get();
    case Input::Kind::box: return b.box.get();
    case Input::Kind::function: return b.record;
    case Input::Kind::pair: return b.pair.get();
    case Input::Kind::code: return b.code.get();
  }
  return false;
}

[[noreturn]] void fail_unbound(const Graph& graph, const Input& input) {
  const InputText& text = text_of(input.kind);
  throw Error(
      Category::bad_argument,
      fmt::format("replay: the input {}{} is bound to no {}. Hint: a graph that was read from a text has no "
                  "objects of its own; bind those of a run",
                  text.sigil, graph.name_of(input), text.word));
}

class Interpreter {
 public:
  Interpreter(const Graph& graph, Emitter& emitter, std::span<const Binding> bindings,
              std::span<const Number> symbols)
      : graph_(graph),
        emitter_(emitter),
        bindings_(bindings),
        symbols_(symbols),
        values_(static_cast<size_t>(graph.value_count())),
        last_use_(values_.size(), -1) {}

  Tensors run(size_t& ran) {
    find_last_uses();
    for (size_t i = 0; i < graph_.inputs().size(); ++i)
      if (graph_.inputs()[i].kind == Input::Kind::tensor)
        values_[static_cast<size_t>(graph_.inputs()[i].value)] = bindings_[i].tensor;
    for (size_t n = 0; n < graph_.nodes().size(); ran = ++n) {
      try {
        run_node(graph_.nodes()[n], static_cast<int32_t>(n));
      } catch (Exception& e) {
        add_context(e, graph_, graph_.nodes()[n]);
        throw;
      }
    }
    Tensors outputs;
    for (ValueId v : graph_.outputs())
      outputs.push_back(v == kNoValue ? Tensor() : values_[static_cast<size_t>(v)]);
    return outputs;
  }

 private:
  void find_last_uses() {
    const auto& nodes = graph_.nodes();
    for (size_t n = 0; n < nodes.size(); ++n)
      for (ValueId v : graph_.operands(nodes[n]))
        if (v != kNoValue) last_use_[static_cast<size_t>(v)] = static_cast<int32_t>(n);
    for (ValueId v : graph_.outputs())
      if (v != kNoValue) last_use_[static_cast<size_t>(v)] = static_cast<int32_t>(nodes.size());
  }

  bool is_needed_after(const Node& node, int32_t index) const {
    const ValueId first = graph_.operands(node)[0];
    return first != kNoValue && last_use_[static_cast<size_t>(first)] != index;
  }

  void run_node(const Node& node, int32_t index);
  void emit_bookkeeping(const Node& node, Call& call, Tensor* results);

  const Graph& graph_;
  Emitter& emitter_;
  std::span<const Binding> bindings_;
  std::span<const Number> symbols_;
  Tensors values_;
  std::vector<int32_t> last_use_;
  std::vector<TensorImpl*> operands_;
  std::vector<std::byte> attrs_;
};

void Interpreter::emit_bookkeeping(const Node& node, Call& call, Tensor* results) {
  const Input& input = graph_.inputs()[static_cast<size_t>(node.handle)];
  const Binding& b = bindings_[static_cast<size_t>(node.handle)];
  if (!is_bound(input.kind, b)) fail_unbound(graph_, input);
  UnpackAttrs unpack{{}, b.record, b.slot};
  HookAttrs hook{{}, b.hook.get(), b.leaf, static_cast<int>(call.outputs)};
  AccumulateGradAttrs accumulate{{}, b.leaf};
  RetainGradAttrs retain{{}, b.box.get()};
  FunctionBackwardAttrs function{{}, b.record};
  PackAttrs pack{{}, b.pair.get()};
  HostAttrs code{b.code.get()};
  switch (input.kind) {
    case Input::Kind::slot:
      if (!b.record) {
        results[0] = b.tensor;
        return;
      }
      call.attrs = &unpack;
      break;
    case Input::Kind::hook:
      if (!b.hook->is_live()) {  // removed by an earlier hook of this run
        for (int i = 0; i < call.outputs; ++i)
          results[i] = call.operands[i] ? Tensor(RefPtr<TensorImpl>(call.operands[i])) : Tensor();
        return;
      }
      call.attrs = &hook;
      break;
    case Input::Kind::leaf: call.attrs = &accumulate; break;
    case Input::Kind::box: call.attrs = &retain; break;
    case Input::Kind::function: call.attrs = &function; break;
    case Input::Kind::pair: call.attrs = &pack; break;
    case Input::Kind::code: call.attrs = &code; break;
    case Input::Kind::tensor: RG_ASSERT(false);
  }
  emitter_.emit(call, results);
}

void Interpreter::run_node(const Node& node, int32_t index) {
  operands_.clear();
  for (ValueId v : graph_.operands(node))
    operands_.push_back(v == kNoValue ? nullptr : values_[static_cast<size_t>(v)].get());
  void* attrs = node.attrs ? concrete_attrs(*node.op, node.attrs, symbols_, attrs_) : nullptr;
  Call call{node.op, operands_, attrs, node.where, node.results};
  Tensor* results = values_.data() + node.first_result;
  // Accumulation takes over the memory of its first operand when nobody else holds it: a further reference protects a
  // value that is needed later.
  Tensor held;
  if ((node.op == &ops::accumulate || node.op == &ops::accumulate_grad) && is_needed_after(node, index))
    held = Tensor(RefPtr<TensorImpl>(operands_[0]));
  if (node.handle >= 0)
    emit_bookkeeping(node, call, results);
  else
    emitter_.emit(call, results);
  for (ValueId v : graph_.operands(node))
    if (v != kNoValue && last_use_[static_cast<size_t>(v)] == index) values_[static_cast<size_t>(v)].reset();
}

}  // namespace

Dim concrete_dim(Dim dim, std::span<const Number> values) {
  return dim.is_symbolic() ? Dim(values[static_cast<size_t>(dim.id())].as_int()) : dim;
}

void* concrete_attrs(const OpInfo& op, void* attrs, std::span<const Number> values,
                     std::vector<std::byte>& copy) {
  if (!op.attrs_size || !op.visit_attrs) return attrs;
  copy.resize(op.attrs_size);
  std::memcpy(copy.data(), attrs, op.attrs_size);
  for_each_field(op, copy.data(),
                 Fields{[&](auto, Dim& v) { v = concrete_dim(v, values); },
                        [&](auto, Scalar& v) {
                          if (v.is_symbolic()) v = Scalar(values[static_cast<size_t>(v.id())]);
                        },
                        [&](auto, Shape& v) {
                          for (int i = 0; i < v.rank(); ++i) v[i] = concrete_dim(v[i], values);
                        }});
  return copy.data();
}

TensorType concrete_type(const TensorType& type, std::span<const Number> values) {
  TensorType out = type;
  for (int i = 0; i < out.shape.rank(); ++i) {
    out.shape[i] = concrete_dim(out.shape[i], values);
    if (out.shape[i] < 0) [[unlikely]]
      throw Error(Category::bad_argument,
                  fmt::format("{} has a negative size for these values of its symbols", to_string(out)));
  }
  return out;
}

std::vector<Number> symbol_values(const Graph& graph, std::span<const Binding> bindings) {
  std::vector<Number> values(static_cast<size_t>(graph.symbols.size()));
  for (int32_t id = 0; id < graph.symbols.size(); ++id)
    values[static_cast<size_t>(id)] = graph.symbols.expr(id).hint;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const TensorType& type = graph.type(graph.inputs()[i]);
    const Tensor& bound = bindings[i].tensor;
    if (!bound.defined()) continue;
    if (bound.dim() != type.shape.rank() || bound.dtype() != type.dtype)
      throw Error(Category::shape_mismatch,
                  fmt::format("replay: input {} is {}, the graph wants rank {} of {}", i, describe(bound),
                              type.shape.rank(), name(type.dtype)));
    for (int d = 0; d < type.shape.rank(); ++d) {
      const Dim want = type.shape[d];
      if (want.is_symbolic() && graph.symbols.expr(want.id()).op == Arith::symbol)
        values[static_cast<size_t>(want.id())] = Number::of(bound.impl().shape()[d].value());
    }
  }
  graph.symbols.evaluate(values);
  return values;
}

void add_context(Exception& error, const Graph& graph, const Node& node) {
  if (node.origin < 0) return;
  const Origin& origin = graph.origin(node.origin);
  if (origin.part != "tensor hook" && origin.part != "leaf")
    error.add_context(fmt::format("while differentiating {} made at {}", origin.op, to_string(node.where)));
}

Tensors replay(const Graph& graph, Emitter& emitter, std::span<const Binding> bindings,
               std::span<const Number> values, size_t* ran) {
  RG_ASSERT(bindings.size() == graph.inputs().size());
  const bool packs =
      std::ranges::any_of(graph.inputs(), [](const Input& i) { return i.kind == Input::Kind::pair; });
  const detail::AutocastOff no_casts;  // those of the graph are nodes
  std::optional<detail::NoDefaultHooks> no_hooks;
  if (packs) no_hooks.emplace();
  size_t unasked = 0;
  return Interpreter(graph, emitter, bindings, values).run(ran ? *ran : unasked);
}

Tensors replay(const Graph& graph, Emitter& emitter, std::span<const Binding> bindings) {
  const std::vector<Number> values = symbol_values(graph, bindings);
  return replay(graph, emitter, bindings, values);
}

}  // namespace retrograd::ir
