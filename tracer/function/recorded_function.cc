// See tracer/function/recorded_function.h.
#include "tracer/function/recorded_function.h"

#include <algorithm>

#include "ir/replay.h"

namespace retrograd::inline v0 {

Layout Layout::of(const TensorImpl& x, Dim begin) {
  Layout layout{x.type(), {}, x.offset() - begin};
  for (int i = 0; i < x.rank(); ++i) layout.strides.push_back(x.stride(i));
  return layout;
}

void Layout::put_in(std::span<const Number> values) {
  type = ir::concrete_type(type, values);
  for (int i = 0; i < strides.rank(); ++i) strides[i] = ir::concrete_dim(strides[i], values);
  offset = ir::concrete_dim(offset, values);
}

Tensor Layout::in(const TensorImpl& memory) const {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(type.dtype, type.device, type.shape);
  for (int i = 0; i < strides.rank(); ++i) cell->set_stride(i, strides[i]);
  cell->set_storage(memory.storage());
  cell->set_offset(memory.offset() + offset);
  return Tensor(std::move(cell));
}

bool Layout::is(const TensorImpl& x, const TensorImpl& memory) const {
  return x.storage() == memory.storage() && x.offset() == memory.offset() + offset && x.type() == type &&
         strides == of(x, 0).strides;
}

RecordedFunction RecordedFunction::at_sizes(std::span<const Number> values, int32_t sizes) const {
  RecordedFunction made = bindings_at(values, sizes);
  made.graph = graph.at_sizes(values, sizes);
  return made;
}

RecordedFunction RecordedFunction::bindings_at(std::span<const Number> values, int32_t sizes) const {
  RecordedFunction made{.graph = {},
                        .outside = outside,
                        .inputs = inputs,
                        .numbers = numbers,
                        .dependencies = dependencies,
                        .traceable_calls = traceable_calls,
                        .results = results,
                        .grads = grads,
                        .result_grads = result_grads,
                        .writes = writes,
                        .saved = saved,
                        .no_grad = no_grad,
                        .has_two_histories = has_two_histories,
                        .reads = reads};
  for (Location& l : made.results) l.put_in(values);
  for (Grad& g : made.grads) g.location.put_in(values);
  for (auto& [result, location] : made.result_grads) location.put_in(values);
  for (Saved& s : made.saved) s.location.put_in(values);
  for (TraceableCall& call : made.traceable_calls)
    for (Scalar& number : std::span(call.attrs.number).first(static_cast<size_t>(call.attrs.numbers)))
      if (number.is_symbolic() && graph.symbols.expr(number.id()).last_symbol < sizes)
        number = values[static_cast<size_t>(number.id())];
  return made;
}

std::vector<Number> RecordedFunction::hints(const ir::Graph& graph) {
  std::vector<Number> numbers;
  for (int32_t i = 0; i < graph.symbols.size(); ++i) numbers.push_back(graph.symbols.expr(i).hint);
  if (numbers.empty()) numbers.resize(1);
  return numbers;
}

std::optional<std::vector<Number>> RecordedFunction::values_at(const ir::Graph& graph,
                                                               std::span<const Number> values) {
  std::vector<Number> all = hints(graph);
  std::ranges::copy(values, all.begin());
  graph.symbols.evaluate(all);
  if (graph.symbols.failing_guard(all) >= 0) return {};
  return all;
}

void RecordedFunction::settle_unused(std::span<const Numbers> numbers, const ir::Graph& graph) noexcept {
  Number values[LiveNumbers::kMost];
  for (size_t i = numbers.size(); i-- > 0;) {
    const Numbers& n = numbers[i];
    for (int k = 0; k < n.count; ++k) values[k] = graph.symbols.expr(n.first + k).hint;
    if (n.live.settle) n.live.settle({values, static_cast<size_t>(n.count)}, false);
  }
}

size_t RecordedFunction::effects_among(const ir::Graph& graph, size_t nodes) {
  return static_cast<size_t>(std::ranges::count_if(std::span(graph.nodes()).first(nodes),
                                                   [](const auto& n) { return n.op->is(Trait::effect); }));
}

}  // namespace retrograd
