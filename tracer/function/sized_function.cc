// Planning: see tracer/function/sized_function.h.
#include "tracer/function/sized_function.h"

#include <algorithm>

#include "ir/verify.h"
#include "tracer/function/explain.h"
#include "tracer/function/planning.h"
#include "tracer/observe/log.h"

namespace retrograd::inline v0 {
namespace {

ir::Graph sized_graph(const FunctionCapture& capture, std::span<const Number> values) {
  ir::Graph made = capture.recorded().graph.at_sizes(values, capture.sizes().count());
  ir::verify(made);
  return made;
}

// The graph is needed for backwards only.
std::optional<RecordedFunction> put_in(const FunctionCapture& capture, std::span<const Number> values) {
  const int32_t sizes = capture.sizes().count();
  if (!sizes) return {};
  RecordedFunction made = capture.recorded().bindings_at(values, sizes);
  if (capture.tape())
    made.graph = sized_graph(capture, values);
  else
    made.graph.symbols = capture.recorded().graph.symbols_at(values, sizes);
  return made;
}

FunctionResults put_in(FunctionResults results, const RecordedFunction& recorded) {
  results.finish(recorded);
  return results;
}

}  // namespace

SizedFunction::SizedFunction(std::shared_ptr<FunctionCapture> capture, const Tensors& arguments,
                             std::vector<Number> values, const MemoryBudget& budget)
    : capture_(std::move(capture)),
      sizes_(std::move(values)),
      own_(put_in(*capture_, sizes_)),
      recorded_(own_ ? *own_ : capture_->recorded()),
      results_(put_in(capture_->results(), recorded_)) {
  if (const RecordedTape* const tape = capture_->tape()) {
    const std::vector<Number> numbers = own_ ? sizes_ : RecordedFunction::hints(recorded_.graph);
    RecordedBackwards first = capture_->take_backwards();
    if (first.empty()) first = tape->backwards_at(results_, numbers);
    backwards_ = std::make_unique<FunctionBackwards>(recorded_, *tape, results_, numbers, std::move(first));
  }
  make_plans(arguments, budget);
}

bool SizedFunction::has_sizes(std::span<const Number> values) const {
  const size_t count = static_cast<size_t>(capture_->sizes().count());
  return std::ranges::equal(std::span(sizes_).first(count), values.first(count));
}

BackwardChoices SizedFunction::choices() const {
  return backwards_ ? backwards_->choices() : BackwardChoices();
}

void SizedFunction::make_plans(const Tensors& arguments, const MemoryBudget& budget) {
  numbers_ = RecordedFunction::hints(recorded_.graph);
  if (budget.is_set()) {
    if (backwards_ && !backwards_->first().error)
      plan_with_backward_within(budget, arguments);
    else
      plan_whole_within(budget, arguments);
  } else if (!plan_shared(arguments)) {
    if (backwards_) backwards_->find_recompute();
    plan_forward(arguments);
  }
  const auto effects = [](const ir::Graph& graph) {
    return RecordedFunction::effects_among(graph, graph.nodes().size());
  };
  RG_ASSERT(effects(planned_) == effects(capture_->recorded().graph));
  if (!backwards_) return;
  backwards_->plan_first();
  if (!budget.is_set() &&
      PrecomputedGradients::are_possible(recorded_, *backwards_, *capture_->tape(), results_))
    precomputed_ =
        std::make_unique<PrecomputedGradients>(recorded_, *backwards_, *capture_->tape(), numbers_);
}

ir::Graph SizedFunction::optimised_forward() const {
  ir::Graph graph = own_ && !backwards_ ? sized_graph(*capture_, sizes_) : recorded_.graph.copy();
  if (backwards_) backwards_->recompute().replace_outputs(graph, saved_outputs(recorded_));
  return optimised(graph, outside_writes(recorded_), {});
}

void SizedFunction::plan_forward(const Tensors& arguments) {
  planned_ = optimised_forward();
  ir::GroupMemories groups(planned_, executor_for(planned_), numbers_);
  std::optional<int64_t> waste;
  if (capture_->kind() == FunctionKind::step)
    waste = std::max<int64_t>(0, bytes_saved(capture_->recorded(), sizes_, planned_, groups));
  make_plan(arguments, waste, groups);
}

// The graphs that the capture has optimised for all sizes. False if there are none, or if they do not serve these sizes
// or have a higher peak than the recorded ones.
bool SizedFunction::plan_shared(const Tensors& arguments) {
  const OptimisedFunction* const shared = own_ ? capture_->optimised() : nullptr;
  std::optional<ir::Graph> graph = shared ? shared->forward(sizes_) : std::nullopt;
  if (!graph) return false;
  planned_ = *std::move(graph);
  ir::GroupMemories groups(planned_, executor_for(planned_), numbers_);
  const int64_t saved = bytes_saved(capture_->recorded(), sizes_, planned_, groups);
  if (saved < 0 || (backwards_ && !backwards_->adopt(*shared, sizes_))) return false;
  make_plan(arguments, capture_->kind() == FunctionKind::step ? std::optional(saved) : std::nullopt, groups);
  return true;
}

void SizedFunction::make_plan(const Tensors& arguments, std::optional<int64_t> arena_waste,
                              ir::GroupMemories& groups) {
  const std::vector<ir::Binding> bindings = bind(arguments);
  plan_ = plan_of(planned_, numbers_, bindings, written_inputs(bindings), arena_waste, &groups);
}

// Row-major memory that nothing else is bound to.
std::vector<WrittenInput> SizedFunction::written_inputs(std::span<const ir::Binding> bindings) const {
  std::vector<WrittenInput> written;
  std::unordered_map<const Storage*, int> bound;  // how often
  for (const ir::Binding& b : bindings)
    if (b.tensor.defined()) ++bound[b.tensor.impl().storage().get()];
  for (const RecordedFunction::Write& w : recorded_.writes) {
    const Tensor& target = bindings[static_cast<size_t>(w.input)].tensor;
    if (target.is_contiguous() && w.may_lie_there() && bound.at(target.impl().storage().get()) == 1)
      written.push_back({planned_.inputs()[static_cast<size_t>(w.input)].value,
                         planned_.outputs()[static_cast<size_t>(w.output)]});
  }
  return written;
}

void SizedFunction::log(std::string_view why) const {
  logging::captured(planned_, why, memory());
  if (logging::wants(logging::Topic::gradients))
    if (const std::string given = given_gradients(planned_, recorded_.inputs); !given.empty())
      logging::write(logging::Topic::gradients, given);
  if (const ir::Graph* backward = backward_graph())
    logging::captured(*backward, "the backward of this function", memory());
}

const RecordedFunction* SizedFunction::recorded_backward() const {
  const FunctionBackward* const backward = backwards_ ? backwards_->of_all() : nullptr;
  return backward ? &backward->recorded : nullptr;
}

const ir::Graph* SizedFunction::backward_graph() const {
  const FunctionBackward* const backward = backwards_ ? backwards_->of_all() : nullptr;
  return backward ? &backward->planned : nullptr;
}

}  // namespace retrograd
