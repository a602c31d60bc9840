// See tracer/function/function_capture.h.
#include "tracer/function/function_capture.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/inplace.h"
#include "engine/taper.h"
#include "ir/verify.h"
#include "tracer/function/kept_values.h"

namespace retrograd::inline v0 {

FunctionCapture::FunctionCapture(const FunctionBody& body, const Tensors& arguments, CallGuard guard,
                                 FunctionKind kind, const KnownCalls* known, const SizeRequest& symbols,
                                 PairForm pairs, SourceLocation where)
    : kind_(kind),
      where_(where),
      pairs_(pairs),
      known_(known ? std::optional(*known) : std::nullopt),
      guards_(std::move(guard), recorded_),
      results_(where) {
  const std::vector<TensorGuard>& given = guards_.call().arguments;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (kind == FunctionKind::step && !given[i].is_leaf)
      fail(Category::unsupported, "compile_step",
           fmt::format("argument {} of a recorded step has a history, {}. Hint: detach it", i,
                       describe(arguments[i])),
           where);
  recorded_.graph.name = kind == FunctionKind::step ? "step" : "function";
  sizes_ = sizes_of(symbols, given, recorded_.graph.symbols);
  try {
    record(body, arguments, known);
    if (!sizes_.count())
      ir::verify(recorded_.graph);  // else with numbers in place of symbols, which may differ in form
    guards_.finish(arguments);
    if (!tape_) recorded_.outside->loosen();
  } catch (...) {
    settle_recorded();
    throw;
  }
}

ArgumentSizes FunctionCapture::sizes_of(const SizeRequest& request, const std::vector<TensorGuard>& given,
                                        SymbolTable& table) {
  const FunctionCapture* const before = request.before.get();
  switch (request.symbols) {
    case SizeSymbols::none: return ArgumentSizes::that_vary(given, {}, given, request.live, table);
    case SizeSymbols::varied:
      return ArgumentSizes::that_vary(before->guards().call().arguments, before->sizes(), given, request.live,
                                      table);
    case SizeSymbols::as_before: return ArgumentSizes::as_known(before->sizes(), given, table);
    case SizeSymbols::all: return ArgumentSizes::all(given, request.live, table);
  }
  return {};
}

std::string FunctionCapture::gone() const {
  return fmt::format("{} in the recording of the call at {}", recorded_.outside->gone(), to_string(where_));
}

FunctionCapture::~FunctionCapture() { settle_recorded(); }

const OptimisedFunction* FunctionCapture::optimised() const {
  if (!choices_) return nullptr;
  std::call_once(optimised_once_, [&] {
    optimised_.emplace(recorded_, tape_ ? tape_->shared() : nullptr, *choices_, sizes_.count());
  });
  return &*optimised_;
}

void FunctionCapture::settle_recorded() noexcept {
  if (std::exchange(numbers_are_open_, false))
    RecordedFunction::settle_unused(recorded_.numbers, recorded_.graph);
}

void FunctionCapture::record(const FunctionBody& body, const Tensors& arguments, const KnownCalls* known) {
  const SymbolTable::Scope symbols(&recorded_.graph.symbols);  // also after that of the recorder has ended
  auto tape = std::make_unique<RecordedTape>(
      std::make_unique<FunctionRecorder>(recorded_.graph, sizes_, where_, known, pairs_));
  FunctionRecorder& recorder = tape->recorder();
  {
    const Tensors stand_ins = recorder.inputs().arguments(arguments);
    Taper taper(recorder);
    Emitter::Scope scope(taper);
    FunctionCall::Observer::Scope functions(&recorder.functions());
    CallOutcome outcome = body(stand_ins);
    form_ = std::move(outcome.form);
    recorder.check_recorded();
    check_argument_hooks(recorder.inputs());
    recorder.functions().check_results(outcome.tensors);
    recorder.host().packs().note_results(outcome.tensors);
    results_.bind(recorder, stand_ins, std::move(outcome.tensors), kind_ == FunctionKind::function,
                  guards_.call().gradients);
  }
  guards_.note_reached(recorder.grads().reached(), recorder.inputs());
  if (std::ranges::any_of(results_, &ResultBinding::is_differentiable)) {
    tape->find_operands(results_);
    tape_ = std::move(tape);
    first_backwards_ = tape_->record_first(results_);
    tape_->find_functions(results_);
  }
  calls_code_ = recorder.host().calls_code();
  has_traceable_pairs_ = recorder.host().packs().has_traceable();
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

std::optional<std::vector<Number>> FunctionCapture::fit(const CallGuard& call, const Tensors& arguments,
                                                        std::string& misfit) const {
  misfit = guards_.misfit(call, arguments, sizes_.count() == 0);
  if (!misfit.empty()) return {};
  const SymbolTable& symbols = recorded_.graph.symbols;
  if (sizes_.count() == 0 && symbols.guards().empty()) return std::vector<Number>();
  std::vector<Number> values = RecordedFunction::hints(recorded_.graph);
  for (const RecordedFunction::Numbers& n : recorded_.numbers)
    if (!n.live.settle) n.read(values);  // reading others counts as a use
  misfit = sizes_.evaluate(call.arguments, symbols, values);
  if (!misfit.empty()) return {};
  if (sizes_.count() == 0) values.clear();
  return values;
}

}  // namespace retrograd
