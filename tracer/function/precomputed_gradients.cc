// See tracer/function/precomputed_gradients.h.
#include "tracer/function/precomputed_gradients.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/passes/memory_classes.h"
#include "ir/splice.h"
#include "ops/full.h"
#include "tracer/function/planning.h"
#include "tracer/observe/profile.h"

namespace retrograd::inline v0 {
namespace {

bool can_be_looked_at(const TensorType& x) {
  return x.device == kCPU && (x.dtype == kFloat32 || x.dtype == kFloat64);
}

bool is_one(const TensorImpl& x) {
  return x.dtype() == kFloat32 ? *static_cast<const float*>(x.data()) == 1
                               : *static_cast<const double*>(x.data()) == 1;
}

// True if nothing draws random numbers, can fail or runs outside the graph, and all inputs were saved by the forward.
bool is_plain(const RecordedFunction& backward) {
  return ir::can_be_spliced(backward.graph) && backward.reads.straight.empty() && backward.numbers.empty() &&
         std::ranges::all_of(backward.inputs,
                             [](const auto& i) { return i.argument >= 0 || i.saved >= 0; }) &&
         std::ranges::none_of(backward.graph.nodes(), [](const ir::Node& n) {
           return n.op->is(Trait::random) || n.op->is(Trait::checks) || n.op->run_on_host;
         });
}

// Whether each of the last outputs is in memory that the graph makes and that no other output uses.
bool are_new(const ir::Graph& graph, size_t first) {
  ir::MemoryClasses classes(graph);
  std::set<ir::ValueId> shown;
  for (size_t o = 0; o < graph.outputs().size(); ++o) {
    const ir::ValueId v = graph.outputs()[o];
    if (v == ir::kNoValue) continue;
    if (!shown.insert(classes.representative(v)).second && o >= first) return false;
    if (o >= first && !classes.is_private(v)) return false;
  }
  return true;
}

ir::ValueId append_one(ir::Graph& graph, const TensorType& type) {
  ops::Full::Attrs attrs{type.shape, Scalar(1.0), type.dtype, type.device};
  return graph.append(ops::info<ops::Full>, {}, &attrs, {&type, 1}).first_result;
}

}  // namespace

bool PrecomputedGradients::are_possible(const RecordedFunction& forward, const FunctionBackwards& backwards,
                                        const RecordedTape& tape, const FunctionResults& results) {
  const ir::Recompute& recompute = backwards.recompute();
  if (!recompute.any() || !forward.writes.empty() || !forward.grads.empty() || !forward.numbers.empty() ||
      forward.graph.symbols.size() > 0)
    return false;
  const Location& loss = std::ranges::find_if(results, &ResultBinding::is_differentiable)->location;
  if (!loss.defined() || loss.type.shape.numel() != 1 || !can_be_looked_at(loss.type) || !is_plain(backwards.first().recorded))
    return false;
  ir::MemoryClasses classes(forward.graph);
  const std::vector<ir::ValueId> saved = tape.recorder().saved().values();
  for (size_t i = 0; i < saved.size(); ++i)
    if (!recompute.goes(i) && classes.is_private(saved[i])) return false;
  return true;
}

bool PrecomputedGradients::is_cotangent(std::span<TensorImpl* const> cotangents) {
  return is_one(**std::ranges::find_if(cotangents, [](TensorImpl* c) { return c; }));
}

// The forward as planned, followed by its backward.
ir::Graph PrecomputedGradients::joined() const {
  const RecordedFunction& backward = backwards_.first().recorded;
  ir::Graph graph = forward_.graph.copy();
  backwards_.recompute().replace_outputs(graph, saved_outputs(forward_));
  const std::vector<ir::ValueId> saved = tape_.recorder().saved().values();
  std::vector<ir::ValueId> inputs, outputs = graph.outputs();
  for (size_t i = 0; i < backward.inputs.size(); ++i)
    inputs.push_back(backward.inputs[i].saved >= 0
                         ? saved[static_cast<size_t>(backward.inputs[i].saved)]
                         : append_one(graph, backward.graph.type(backward.graph.inputs()[i].value)));
  for (ir::ValueId v : ir::splice(graph, backward.graph, inputs)) outputs.push_back(v);
  graph.set_outputs(std::move(outputs));
  return graph;
}

// The memory of the values that an eager run saves and this run does not.
int64_t PrecomputedGradients::bytes_not_saved() const {
  ir::MemoryClasses classes(forward_.graph);
  std::map<ir::ValueId, int64_t> bytes;  // keyed by the first value of each class, which allocates the memory
  for (ir::ValueId v = 0; v < forward_.graph.value_count(); ++v)
    bytes.try_emplace(classes.representative(v), bytes_of(forward_.graph.type(v)));
  const std::vector<ir::ValueId> saved = tape_.recorder().saved().values();
  int64_t sum = 0;
  for (size_t i = 0; i < saved.size(); ++i)
    if (backwards_.recompute().goes(i)) sum += std::exchange(bytes[classes.representative(saved[i])], 0);
  return sum;
}

void PrecomputedGradients::make_plan() {
  if (std::exchange(is_tried_, true)) return;
  ir::Graph graph = joined();
  const size_t first = forward_.graph.outputs().size();
  int64_t kept = 0;
  for (ir::ValueId v : std::span(graph.outputs()).subspan(first))
    if (v != ir::kNoValue) kept += bytes_of(graph.type(v));
  if (kept > bytes_not_saved() || !are_new(graph, first)) return;
  ir::Graph planned = optimised(graph, {}, {});
  if (peak_of(planned, {}, {}) > peak_of(forward_.graph, {}, {})) return;
  planned_ = std::move(planned);
  plan_ = plan_of(planned_, numbers_);
}

void PrecomputedGradients::expect() {
  std::lock_guard lock(backwards_.mutex());
  make_plan();
  if (plan_) prediction_.expect();
}

std::optional<Tensors> PrecomputedGradients::run(const std::vector<ir::Binding>& bindings,
                                                 std::span<const Number> numbers) {
  try {
    return run_plan(*plan_, bindings, numbers);
  } catch (const OutOfMemory&) {
    prediction_.computed();
    prediction_.missed();
    return {};
  }
}

Tensors PrecomputedGradients::of_run(const Tensors& outputs) {
  const size_t of_forward = forward_.graph.outputs().size();
  if (outputs.size() == of_forward) return {};
  prediction_.computed();
  return {outputs.begin() + static_cast<std::ptrdiff_t>(of_forward), outputs.end()};
}

}  // namespace retrograd
