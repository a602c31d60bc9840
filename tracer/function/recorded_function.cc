// See tracer/function/recorded_function.h.
#include "tracer/function/recorded_function.h"

#include <algorithm>

namespace retrograd::inline v0 {

Layout Layout::of(const TensorImpl& x, int64_t begin) {
  Layout layout{x.type(), {}, x.storage_offset() - begin};
  for (int i = 0; i < x.rank(); ++i) layout.strides.push_back(x.strides()[i]);
  return layout;
}

Tensor Layout::in(const TensorImpl& memory) const {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(type.dtype, type.device, type.shape);
  std::ranges::copy(strides, cell->mutable_strides());
  cell->set_storage(memory.storage());
  cell->set_storage_offset(memory.storage_offset() + offset);
  return Tensor(std::move(cell));
}

bool Layout::is(const TensorImpl& x, const TensorImpl& memory) const {
  return x.storage() == memory.storage() && x.storage_offset() == memory.storage_offset() + offset &&
         x.type() == type && std::ranges::equal(strides, std::span(x.strides(), strides.size()));
}

std::vector<Number> RecordedFunction::hints(const ir::Graph& graph) {
  std::vector<Number> numbers;
  for (int32_t i = 0; i < graph.symbols.size(); ++i) numbers.push_back(graph.symbols.expr(i).hint);
  if (numbers.empty()) numbers.resize(1);
  return numbers;
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
