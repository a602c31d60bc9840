// Recording: see tracer/function/function_capture.h.
#include "tracer/function/function_capture.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/inplace.h"
#include "engine/taper.h"
#include "ir/verify.h"
#include "tracer/function/kept_values.h"
#include "tracer/function/planning.h"
#include "tracer/observe/log.h"

namespace retrograd::inline v0 {

FunctionCapture::FunctionCapture(const FunctionBody& body, const Tensors& arguments, CallGuard guard,
                                 FunctionKind kind, const KnownCalls* known, SourceLocation where)
    : kind_(kind), where_(where), guards_(std::move(guard), recorded_), results_(where) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (kind == FunctionKind::step && !guards_.call().arguments[i].is_leaf)
      fail(Category::unsupported, "compile_step",
           fmt::format("argument {} of a recorded step has a history, {}. Hint: detach it", i,
                       describe(arguments[i])),
           where);
  recorded_.graph.name = kind == FunctionKind::step ? "step" : "function";
  try {
    record(body, arguments, known);
    make_plans(arguments);
  } catch (...) {
    settle_recorded();
    throw;
  }
}

FunctionCapture::~FunctionCapture() { settle_recorded(); }

// Settles the numbers that the recording read if no run has used them.
void FunctionCapture::settle_recorded() noexcept {
  if (std::exchange(numbers_are_open_, false))
    RecordedFunction::settle_unused(recorded_.numbers, recorded_.graph);
}

void FunctionCapture::record(const FunctionBody& body, const Tensors& arguments, const KnownCalls* known) {
  auto tape = std::make_unique<RecordedTape>(
      std::make_unique<FunctionRecorder>(recorded_.graph, where_, known));
  FunctionRecorder& recorder = tape->recorder();
  {
    const Tensors stand_ins = recorder.inputs().arguments(arguments);
    Taper taper(recorder);
    Emitter::Scope scope(taper);
    FunctionCall::Observer::Scope functions(&recorder.functions());
    Outcome outcome = body(stand_ins);
    form_ = std::move(outcome.form);
    recorder.check_recorded();
    check_argument_hooks(recorder.inputs());
    recorder.functions().check_results(outcome.tensors);
    results_.bind(recorder, stand_ins, std::move(outcome.tensors), kind_ == FunctionKind::function,
                  guards_.call().gradients);
  }
  guards_.note_reached(recorder.grads().reached(), recorder.inputs());
  if (std::ranges::any_of(results_, &ResultBinding::is_differentiable)) {
    tape->find_operands(results_);
    tape_ = std::move(tape);
    backwards_ = std::make_unique<FunctionBackwards>(recorded_, *tape_, results_);
    backwards_->record_first();
    tape_->find_functions(results_);
  }
  calls_code_ = recorder.host().calls_code();
  recorder.finish(results_.recorded(), recorded_);
  results_.finish(recorded_);
  if (recorder.depends_on_locations()) guards_.guard_locations(arguments);
  check_kept(recorder, results_, recorded_, tape_.get());
  if (!tape_) results_.forget_recorded();
}

// Hooks of an argument stay with the argument, and backwards outside call them: its stand-in must have none.
void FunctionCapture::check_argument_hooks(const FunctionInputs& inputs) {
  for (const StandIn& s : inputs.stand_ins())
    if (s.leaf.get() == s.tensor.get() && live_hooks(s.tensor.impl()) != live_hooks(*s.stands_for))
      throw NotRecordable("it registers a hook on an argument, or removes one");
}

// ---- plans --------------------------------------------------------------------------------------------------------

void FunctionCapture::make_plans(const Tensors& arguments) {
  ir::verify(recorded_.graph);
  guards_.finish(arguments);
  numbers_ = RecordedFunction::hints(recorded_.graph);
  if (backwards_) backwards_->find_recompute();
  plan_forward(arguments);
  const auto effects = [](const ir::Graph& graph) {
    return RecordedFunction::effects_among(graph, graph.nodes().size());
  };
  RG_ASSERT(effects(planned_) == effects(recorded_.graph));
  if (!backwards_) return;
  backwards_->plan_first();
  if (PrecomputedGradients::are_possible(recorded_, *backwards_, *tape_, results_))
    precomputed_ = std::make_unique<PrecomputedGradients>(recorded_, *backwards_, *tape_, numbers_);
}

void FunctionCapture::plan_forward(const Tensors& arguments) {
  ir::Graph graph = recorded_.graph.copy();
  if (backwards_) backwards_->recompute().replace_outputs(graph, saved_outputs(recorded_));
  planned_ = optimised(graph, outside_writes(recorded_), {});
  ir::GroupMemories groups(planned_, executor_for(planned_), numbers_);
  std::optional<int64_t> waste;
  if (kind_ == FunctionKind::step) waste = arena_waste(recorded_, planned_, groups);
  plan_ = plan_of(planned_, numbers_, written_inputs(arguments), waste, &groups);
}

// Row-major memory that nothing else is bound to.
std::vector<WrittenInput> FunctionCapture::written_inputs(const Tensors& arguments) const {
  std::vector<WrittenInput> written;
  const std::vector<ir::Binding> bindings = bind(arguments);
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

void FunctionCapture::log(std::string_view why) const {
  logging::captured(planned_, why);
  if (const ir::Graph* backward = backward_graph()) logging::captured(*backward, "the backward of this function");
}

const ir::Graph* FunctionCapture::backward_graph() const {
  const FunctionBackward* const backward = backwards_ ? backwards_->of_all() : nullptr;
  return backward ? &backward->planned : nullptr;
}

}  // namespace retrograd
