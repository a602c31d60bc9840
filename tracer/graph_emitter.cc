// See tracer/graph_emitter.h.
#include "tracer/graph_emitter.h"

#include "ir/type_check.h"

namespace retrograd {
namespace {
constinit std::atomic<uint64_t> recorder_count{0};
}

GraphEmitter::GraphEmitter(ir::Graph& graph)
    : graph_(graph),
      id_(recorder_count.fetch_add(1, std::memory_order_relaxed) + 1),
      scope_(std::in_place, &graph.symbols) {}

Tensor GraphEmitter::make(const TensorType& type, ir::ValueId value) const {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(type.dtype, type.device, type.shape);
  cell->graph = id_;
  cell->value_id = value;
  return Tensor(std::move(cell));
}

ir::Node& GraphEmitter::append(const Call& call, std::span<const TensorType> results) {
  const size_t begin = operands_.size();  // finding a value may append nodes of its own
  for (TensorImpl* x : call.operands)
    operands_.push_back(!x                                 ? ir::kNoValue
                        : x->graph == id_ && !has_written_ ? x->value_id
                                                           : value_of(Tensor(RefPtr<TensorImpl>(x))));
  ir::Node& node = graph_.append(*call.op, std::span(operands_).subspan(begin), call.attrs, results);
  operands_.resize(begin);
  node.where = call.where;
  node.origin = origin_index_;
  return node;
}

void GraphEmitter::infer(const Call& call, Tensor* results) const {
  TensorImpl* outputs[kMaxOutputs];
  for (int i = 0; i < call.outputs; ++i) {
    results[i] = Tensor(TensorImpl::make());
    outputs[i] = results[i].get();
    outputs[i]->graph = id_;
  }
  ir::infer_types(call, outputs);
}

ir::Node& GraphEmitter::append_node(const Call& call, Tensor* results) {
  TensorType types[kMaxOutputs];
  for (int i = 0; i < call.outputs; ++i) types[i] = results[i].impl().type();
  ir::Node& node = append(call, {types, static_cast<size_t>(call.outputs)});
  for (int i = 0; i < call.outputs; ++i) results[i].impl().value_id = node.first_result + i;
  return node;
}

}  // namespace retrograd
