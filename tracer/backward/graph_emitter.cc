// See tracer/backward/graph_emitter.h.
#include "tracer/backward/graph_emitter.h"

#include <fmt/format.h>

#include "engine/batching.h"
#include "engine/driver.h"
#include "ir/type_check.h"

namespace retrograd::inline v0 {
namespace {
constinit std::atomic<uint64_t> recorder_count{0};
}

GraphEmitter::GraphEmitter(ir::Graph& graph, bool of_backward, SourceLocation where)
    : graph_(graph),
      id_(recorder_count.fetch_add(1, std::memory_order_relaxed) + 1),
      of_backward_(of_backward),
      where_(where),
      first_seq_(begin_sequence()),
      scope_(std::in_place, &graph.symbols) {}

// Every run would use the outside graph of the recording, which the recording releases.
void GraphEmitter::check_own(const BackwardRequest& request, const Walk& walk) const {
  const std::string_view op = request.accumulate ? "backward" : "grad";
  for (const Walk::Item& item : walk.order())
    if (item.runs && !is_own(*item.record))
      fail(Category::unsupported, op,
           fmt::format("code that is being recorded differentiates {} made at {}, before the recording. "
                       "Hint: compute it again in the recorded code, or leave that code opaque",
                       item.record->op->name, to_string(item.record->where())),
           request.where);
  if (!of_backward_ || !request.accumulate) return;
  for (const Walk::Leaf& leaf : walk.leaves())
    if (leaf.wanted && leaf.leaf->graph != id_)
      fail(Category::unsupported, op,
           fmt::format("code that is recorded with a backward accumulates into .grad of a leaf from outside, "
                       "{}. Hint: grad(), or leave that code opaque",
                       to_string(leaf.leaf->type())),
           request.where);
}

void GraphEmitter::refuse(Category category, std::string_view text) const {
  const bool is_known = static_cast<bool>(position_.where);
  fail(category, position_.op.empty() ? "compile" : position_.op, text, is_known ? position_.where : where_);
}

Tensors GraphEmitter::own_backward(const BackwardRequest& request, Walk& walk) {
  check_own(request, walk);
  struct Nested {
    Nested(Position& p, const Walk& walk) : position(p), before(p) {
      position.at_leaf = false;
      position.walk = &walk;
      ++position.depth;
    }
    ~Nested() { position = before; }
    Position& position;
    const Position before;
  } nested(position_, walk);
  Tensors gradients = run_backward(request, walk, Emitter::current());
  if (of_backward_ && !request.create_graph)  // then they are not differentiated in a replay either
    for (Tensor& g : gradients)
      if (g.defined()) g = g.detach();
  return gradients;
}

void GraphEmitter::cannot_record(std::string_view op, std::string_view why, SourceLocation where) {
  fail(Category::unsupported, op,
       fmt::format("{}: that cannot be recorded. Hint: leave the code opaque that does it", why), where);
}

Tensor GraphEmitter::make(const TensorType& type, ir::ValueId value) {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(type.dtype, type.device, type.shape);
  cell->graph = id_;
  cell->value_id = value;
  Tensor tensor(std::move(cell));
  made(tensor);
  return tensor;
}

ir::Node& GraphEmitter::append(const Call& call, std::span<const TensorType> results) {
  const size_t begin = operands_.size();  // looking up a value may append nodes
  position_.op = call.op->name;
  position_.where = call.where;
  for (TensorImpl* x : call.operands) {
    if (x && is_batched(*x)) [[unlikely]]  // kept beyond its vmap
      fail_call(call, Category::bad_argument, no_data_text(*x));
    operands_.push_back(!x                                 ? ir::kNoValue
                        : x->graph == id_ && !has_written_ ? x->value_id
                                                           : value_of(Tensor(RefPtr<TensorImpl>(x))));
  }
  ir::Node& node = graph_.append(*call.op, std::span(operands_).subspan(begin), call.attrs, results);
  operands_.resize(begin);
  node.where = call.where;
  node.origin = position_.origin;
  position_.op = {};
  position_.where = where_;
  return node;
}

void GraphEmitter::infer(const Call& call, Tensor* results) {
  TensorImpl* outputs[kMaxOutputs];
  for (int i = 0; i < call.outputs; ++i) {
    results[i] = Tensor(TensorImpl::make());
    outputs[i] = results[i].get();
    outputs[i]->graph = id_;
    made(results[i]);
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
