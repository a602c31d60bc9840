// See tracer/function_ahead.h; start reading at FunctionCapture::find_ahead.
#include "tracer/function_ahead.h"

#include <algorithm>
#include <set>

#include "ir/passes/memory_classes.h"
#include "ir/splice.h"
#include "ops/full.h"
#include "tracer/function_planning.h"
#include "tracer/function_saved.h"

namespace retrograd {
namespace {

// Nothing that draws, fails or runs beside the graph, and nothing from outside but what the forward has saved.
bool is_plain(const RecordedFunction& backward) {
  return ir::can_be_spliced(backward.graph) && backward.straight.empty() && backward.numbers.empty() &&
         std::ranges::all_of(backward.inputs,
                             [](const auto& i) { return i.argument >= 0 || i.saved >= 0; }) &&
         std::ranges::none_of(backward.graph.nodes(), [](const ir::Node& n) {
           return n.op->is(Trait::random) || n.op->is(Trait::checks) || n.op->run_on_host;
         });
}

// Whether each of the last outputs lies in memory that the graph makes and no other output shows.
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

// The forward as it is planned, and its backward behind it.
ir::Graph FunctionCapture::joined(const RecordedFunction& backward) const {
  ir::Graph graph = recorded_.graph.copy();
  recompute_.replace_outputs(graph, saved_outputs(recorded_));
  const std::vector<ir::ValueId> saved = recorder_->saved_values();
  std::vector<ir::ValueId> inputs, outputs = graph.outputs();
  for (size_t i = 0; i < backward.inputs.size(); ++i)
    inputs.push_back(backward.inputs[i].saved >= 0
                         ? saved[static_cast<size_t>(backward.inputs[i].saved)]
                         : append_one(graph, backward.graph.type(backward.graph.inputs()[i].value)));
  for (ir::ValueId v : ir::splice(graph, backward.graph, inputs)) outputs.push_back(v);
  graph.set_outputs(std::move(outputs));
  return graph;
}

// Only for a loss that saves nothing which it has computed: else most of the backward's work is not the forward's, and much of it in vain where
// a guess is wrong.
void FunctionCapture::find_ahead() {
  if (!recompute_.any() || !recorded_.writes.empty() || !recorded_.grads.empty() ||
      !recorded_.numbers.empty() || recorded_.graph.symbols.size() > 0)
    return;
  const Backward& backward = *backwards_.begin()->second;
  const Tensor& loss = std::ranges::find_if(ends_, &End::is_differentiable)->recorded;
  if (loss.numel() != 1 || !is_plain(backward.recorded)) return;

  ir::MemoryClasses classes(recorded_.graph);
  const std::vector<ir::ValueId> saved = recorder_->saved_values();
  std::set<ir::ValueId> gone;
  for (size_t i = 0; i < saved.size(); ++i)
    if (recompute_.goes(i))
      gone.insert(saved[i]);
    else if (classes.is_private(saved[i]))
      return;

  ir::Graph graph = joined(backward.recorded);
  const size_t first = recorded_.graph.outputs().size();
  int64_t kept = 0;
  for (ir::ValueId v : std::span(graph.outputs()).subspan(first))
    if (v != ir::kNoValue) kept += bytes_of(graph.type(v));
  for (ir::ValueId v : gone) kept -= bytes_of(recorded_.graph.type(v));
  if (kept > 0 || !are_new(graph, first)) return;

  auto ahead = std::make_unique<Ahead>();
  ahead->backward = &backward;
  ahead->planned = optimised(graph, {}, {});
  if (peak_of(ahead->planned, {}, {}) > peak_of(recorded_.graph, {}, {})) return;
  ahead->plan = plan_of(ahead->planned, ahead->sources, numbers_);
  ahead_ = std::move(ahead);
}

const FunctionCapture::Ahead* FunctionCapture::ahead_now() const {
  return ahead_ && ahead_->foresight.expects() ? ahead_.get() : nullptr;
}

std::pair<int64_t, int64_t> FunctionCapture::guesses() const {
  if (!ahead_) return {0, 0};
  return {ahead_->foresight.hits(), ahead_->foresight.misses()};
}

FunctionCapture::Saved::~Saved() { drop_ahead(); }

void FunctionCapture::Saved::drop_ahead() {
  if (ahead.empty()) return;
  ahead.clear();
  capture->ahead_->foresight.missed();
}

namespace {

// A cotangent that can be looked at without waiting for a device.
bool is_one(const TensorImpl& x) {
  if (x.device() != kCPU) return false;
  if (x.dtype() == kFloat32) return *static_cast<const float*>(x.data()) == 1;
  if (x.dtype() == kFloat64) return *static_cast<const double*>(x.data()) == 1;
  return false;
}

}  // namespace

Tensors FunctionCapture::Saved::take_ahead(const Backward& backward,
                                           std::span<TensorImpl* const> cotangents) {
  if (!capture->ahead_ || &backward != capture->ahead_->backward) return {};
  const TensorImpl* cotangent = *std::ranges::find_if(cotangents, [](TensorImpl* c) { return c; });
  if (!goes || GradMode::is_enabled() || !is_one(*cotangent)) return {};
  capture->ahead_->foresight.would_serve(!ahead.empty());
  return std::exchange(ahead, {});
}

}  // namespace retrograd
