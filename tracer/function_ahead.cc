// See tracer/function_ahead.h; start reading at FunctionCapture::find_ahead.
#include "tracer/function_ahead.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/passes/memory_classes.h"
#include "ir/splice.h"
#include "ops/full.h"
#include "tracer/function_planning.h"
#include "tracer/function_saved.h"
#include "tracer/profile.h"

namespace retrograd {
namespace {

bool can_be_looked_at(const TensorImpl& x) {
  return x.device() == kCPU && (x.dtype() == kFloat32 || x.dtype() == kFloat64);
}

bool is_one(const TensorImpl& x) {
  return x.dtype() == kFloat32 ? *static_cast<const float*>(x.data()) == 1
                               : *static_cast<const double*>(x.data()) == 1;
}

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
  if (loss.numel() != 1 || !can_be_looked_at(loss.impl()) || !is_plain(backward.recorded)) return;
  ir::MemoryClasses classes(recorded_.graph);
  const std::vector<ir::ValueId> saved = recorder_->saved_values();
  for (size_t i = 0; i < saved.size(); ++i)
    if (!recompute_.goes(i) && classes.is_private(saved[i])) return;
  ahead_ = std::make_unique<Ahead>();
  ahead_->backward = &backward;
}

// The memory of the values that an eager run saves, and this one does not.
int64_t FunctionCapture::bytes_not_saved() const {
  ir::MemoryClasses classes(recorded_.graph);
  std::map<ir::ValueId, int64_t> bytes;  // of the first value of each class, which makes its memory
  for (ir::ValueId v = 0; v < recorded_.graph.value_count(); ++v)
    bytes.try_emplace(classes.representative(v), bytes_of(recorded_.graph.type(v)));
  const std::vector<ir::ValueId> saved = recorder_->saved_values();
  int64_t sum = 0;
  for (size_t i = 0; i < saved.size(); ++i)
    if (recompute_.goes(i)) sum += std::exchange(bytes[classes.representative(saved[i])], 0);
  return sum;
}

void FunctionCapture::plan_ahead() {
  if (std::exchange(ahead_->is_tried, true)) return;
  const RecordedFunction& backward = ahead_->backward->recorded;
  ir::Graph graph = joined(backward);
  const size_t first = recorded_.graph.outputs().size();
  int64_t kept = 0;
  for (ir::ValueId v : std::span(graph.outputs()).subspan(first))
    if (v != ir::kNoValue) kept += bytes_of(graph.type(v));
  if (kept > bytes_not_saved() || !are_new(graph, first)) return;
  ir::Graph planned = optimised(graph, {}, {});
  if (peak_of(planned, {}, {}) > peak_of(recorded_.graph, {}, {})) return;
  ahead_->planned = std::move(planned);
  ahead_->plan = plan_of(ahead_->planned, ahead_->sources, numbers_);
}

// A backward came that gradients computed ahead would have served.
void FunctionCapture::expect_plain_backward() {
  std::lock_guard lock(mutex_);
  plan_ahead();
  if (ahead_->plan) ahead_->foresight.expect();
}

// A run with gradients, if that is worth a guess and there is memory for it; else nothing.
std::optional<Tensors> FunctionCapture::run_ahead(const std::vector<ir::Binding>& bindings,
                                                  std::span<const Number> numbers) {
  if (!ahead_ || !ahead_->foresight.expects()) return {};
  const ProfiledRun profiled(shared_from_this(), ahead_->planned, {}, numbers);
  try {
    return ahead_->plan->run(bindings, numbers);
  } catch (const OutOfMemory&) {
    ahead_->foresight.computed();
    ahead_->foresight.missed();
    return {};
  }
}

std::pair<int64_t, int64_t> FunctionCapture::guesses() const {
  if (!ahead_) return {0, 0};
  return {ahead_->foresight.hits(), ahead_->foresight.misses()};
}

// `outputs`: of a run, which has gradients behind those of the forward if it has computed them.
void FunctionCapture::Saved::keep_ahead(const Tensors& outputs) {
  const size_t of_forward = capture->recorded_.graph.outputs().size();
  if (outputs.size() == of_forward) return;
  ahead.assign(outputs.begin() + static_cast<std::ptrdiff_t>(of_forward), outputs.end());
  capture->ahead_->foresight.computed();
}

FunctionCapture::Saved::~Saved() { drop_ahead(); }

void FunctionCapture::Saved::drop_ahead() {
  if (ahead.empty()) return;
  ahead.clear();
  capture->ahead_->foresight.missed();
}

Tensors FunctionCapture::Saved::take_ahead(const Backward& backward,
                                           std::span<TensorImpl* const> cotangents) {
  if (!capture->ahead_ || &backward != capture->ahead_->backward || !goes) return {};
  const TensorImpl* cotangent = *std::ranges::find_if(cotangents, [](TensorImpl* c) { return c; });
  if (is_differentiated(cotangents) || !is_one(*cotangent)) {
    drop_ahead();
    return {};
  }
  if (ahead.empty())
    capture->expect_plain_backward();
  else
    capture->ahead_->foresight.served();
  return std::exchange(ahead, {});
}

}  // namespace retrograd
