// See tracer/function_capture.h; start reading at FunctionCapture::run, then run_backward.
#include "tracer/function_capture.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "engine/rule.h"
#include "engine/runner.h"
#include "engine/taper.h"
#include "ir/bookkeeping.h"
#include "ir/passes/pipeline.h"
#include "ir/verify.h"
#include "ops/shape_ops.h"
#include "rewrites/rewrites.h"

namespace retrograd {

// ---- what a recording depends on -----------------------------------------------------------------------------------------------------

namespace {

// In a step, hooks are recorded as the objects that they are.
uint64_t hooks_of(const TensorImpl& x) {
  if (!x.meta || !x.meta->has_hooks()) return 0;
  uint64_t hash = 1;
  for (const HookList* list :
       {&x.meta->tensor_hooks, &x.meta->pre_hooks, &x.meta->post_hooks, &x.meta->post_accumulate_hooks}) {
    for (const RefPtr<Hook>& h : list->all())
      if (h->is_live()) hash = hash * 0x9E3779B97F4A7C15u + reinterpret_cast<uintptr_t>(h.get());
    hash = hash * 31 + 7;
  }
  return hash;
}

}  // namespace

TensorLook::TensorLook(const TensorImpl& x, FunctionKind kind)
    : type(x.type()),
      requires_grad(x.requires_grad),
      is_leaf(kind == FunctionKind::function || x.is_leaf()),
      hooks(kind == FunctionKind::step ? hooks_of(x) : 0) {
  for (int i = 0; i < x.rank(); ++i) strides.push_back(x.strides()[i]);
}

bool TensorLook::operator==(const TensorLook& o) const {
  return type == o.type && std::ranges::equal(strides, o.strides) && requires_grad == o.requires_grad &&
         is_leaf == o.is_leaf && hooks == o.hooks;
}

std::string TensorLook::text() const {
  return to_string(type) + (requires_grad ? ", requires a gradient" : "") + (hooks ? ", hooked" : "");
}

CallLook::CallLook(const Tensors& given, FunctionKind kind) : gradients(GradMode::is_enabled()) {
  for (const Tensor& t : given) arguments.emplace_back(t.impl(), kind);
}

std::string CallLook::difference(const CallLook& now) const {
  if (arguments.size() != now.arguments.size())
    return fmt::format("{} arguments, now {}", arguments.size(), now.arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!(arguments[i] == now.arguments[i]))
      return fmt::format("argument {} was {}, is {}", i, arguments[i].text(), now.arguments[i].text());
  if (gradients != now.gradients) return now.gradients ? "gradients are on" : "gradients are off";
  return {};
}

// ---- recording -----------------------------------------------------------------------------------------------------------------------

// The graph from gradients of some results to those of the inputs.
struct FunctionCapture::Backward {
  RecordedFunction recorded;
  ir::Graph planned;
  std::vector<Source> sources;
  std::vector<Number> numbers;
  std::unique_ptr<Plan> plan;
};

// What a run leaves for its backward.
struct FunctionCapture::Saved {
  std::shared_ptr<FunctionCapture> capture;
  Tensors values;
  std::vector<uint32_t> versions;
  std::vector<ir::Binding> bindings;  // of the run, for gradients that are differentiated again
  std::vector<Number> numbers;
};

namespace {

std::vector<Number> hints(const ir::Graph& graph) {
  std::vector<Number> numbers;
  for (int32_t i = 0; i < graph.symbols.size(); ++i) numbers.push_back(graph.symbols.expr(i).hint);
  if (numbers.empty()) numbers.resize(1);
  return numbers;
}

// The graph that is planned: what the passes make of the recorded one.
ir::Graph optimised(const RecordedFunction& recorded) {
  ir::Graph graph = recorded.graph.copy();
  ir::PassInput input = rewrites::all();
  input.writes = recorded.writes;
  input.executor = &cpu_executor();
  ir::run_passes(graph, {.input = input, .off = ir::passes_named(std::getenv(ir::kPassesOffVariable))});
  return graph;
}

std::unique_ptr<Plan> plan_of(const ir::Graph& graph, std::vector<Source>& sources,
                              std::span<const Number> numbers, std::span<const WrittenInput> writes) {
  static const DriveLog no_log;
  static const std::vector<RuleRun> no_rules;
  sources.resize(graph.inputs().size(), Source{Source::Kind::constant});
  return std::make_unique<Plan>(graph, sources, no_rules, no_log, numbers, cpu_executor(), writes);
}

// .grad of the leaf that a run changes.
AutogradMeta& meta_of(const RecordedFunction::Grad& g, const Tensors& arguments) {
  return (g.argument >= 0 ? arguments[static_cast<size_t>(g.argument)].impl() : *g.leaf).need_meta();
}

}  // namespace

FunctionCapture::FunctionCapture(const Function& function, const Tensors& arguments, CallLook look,
                                 FunctionKind kind)
    : kind_(kind), look_(std::move(look)) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!look_.arguments[i].is_leaf || look_.arguments[i].hooks)
      throw Error(Category::unsupported,
                  fmt::format("argument {} of a recorded step has {}. Hint: detach it", i,
                              look_.arguments[i].is_leaf ? "hooks" : "a history"));
  recorded_.graph.name = kind == FunctionKind::step ? "step" : "function";
  record(function, arguments);
  ir::verify(recorded_.graph);
  for (const RecordedFunction::Input& input : recorded_.inputs)
    if (input.captured.defined())
      outside_.emplace_back(input.captured.get(), TensorLook(input.captured.impl(), kind));
  numbers_ = hints(recorded_.graph);
  planned_ = optimised(recorded_);
  plan_ = plan_of(planned_, sources_, numbers_, written_inputs(arguments));
}

FunctionCapture::~FunctionCapture() = default;

void FunctionCapture::record(const Function& function, const Tensors& arguments) {
  recorder_ = std::make_unique<FunctionRecorder>(recorded_.graph);
  Tensors stand_ins;
  for (const Tensor& a : arguments) stand_ins.push_back(recorder_->argument(a));
  {
    Taper taper(*recorder_);
    Emitter::Scope scope(taper);
    BackwardRunner::Scope eager(nullptr);
    results_ = function(stand_ins);
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    if (!results_[i].defined()) continue;
    const auto given = std::ranges::find(stand_ins, results_[i].get(), &Tensor::get);
    if (results_[i].impl().graph && given == stand_ins.end()) continue;
    const bool is_argument = given != stand_ins.end();
    passed_.push_back({i, is_argument ? static_cast<int>(given - stand_ins.begin()) : -1,
                       is_argument ? Tensor() : results_[i]});
    results_[i].reset();
  }
  is_differentiable_.resize(results_.size());
  if (kind_ == FunctionKind::function && look_.gradients)
    for (size_t i = 0; i < results_.size(); ++i)
      is_differentiable_[i] = results_[i].defined() && results_[i].requires_grad();
  if (std::ranges::count(is_differentiable_, true)) {
    for (size_t i = 0; i < stand_ins.size(); ++i)
      if (stand_ins[i].requires_grad()) add_input(stand_ins[i], static_cast<int32_t>(i));
    for (const auto& [leaf, input] : recorder_->captured_leaves()) add_input(leaf, input);
    backwards_[is_differentiable_] = record_backward(is_differentiable_);
  }
  recorder_->finish(results_, recorded_);
  if (!backwards_.empty()) return;
  recorder_.reset();
  results_.assign(results_.size(), Tensor());
}

void FunctionCapture::add_input(const Tensor& leaf, int32_t input) {
  leaves_.push_back(leaf);
  inputs_.push_back(input);
}

std::unique_ptr<FunctionCapture::Backward> FunctionCapture::record_backward(const std::vector<bool>& has_gradient) {
  auto backward = std::make_unique<Backward>();
  backward->recorded.graph.name = "backward";
  FunctionRecorder recorder(backward->recorded.graph, recorder_.get());
  BackwardRequest request;
  request.to_inputs = request.retain_graph = true;
  request.accumulate = false;
  for (size_t i = 0; i < results_.size(); ++i) {
    if (!has_gradient[i]) continue;
    request.roots.push_back(results_[i]);
    request.root_edges.push_back(gradient_edge(results_[i].impl()));
    request.cotangents.push_back(recorder.cotangent(results_[i].impl().type(), static_cast<int>(i)));
  }
  for (const Tensor& leaf : leaves_) request.input_edges.push_back(gradient_edge(leaf.impl()));
  Walk walk = request.walk();
  recorder.finish(retrograd::run_backward(request, walk, recorder), backward->recorded);
  ir::verify(backward->recorded.graph);
  backward->numbers = hints(backward->recorded.graph);
  backward->planned = optimised(backward->recorded);
  backward->plan = plan_of(backward->planned, backward->sources, backward->numbers, {});
  return backward;
}

std::vector<WrittenInput> FunctionCapture::written_inputs(const Tensors& arguments) const {
  std::vector<WrittenInput> written;
  const std::vector<ir::Binding> bindings = bind(arguments);
  for (const ir::OutsideWrite& w : recorded_.writes)
    if (bindings[static_cast<size_t>(w.input)].tensor.is_contiguous())
      written.push_back({planned_.inputs()[static_cast<size_t>(w.input)].value,
                         planned_.outputs()[static_cast<size_t>(w.output)]});
  return written;
}

const ir::Graph* FunctionCapture::backward_graph() const {
  const auto it = backwards_.find(is_differentiable_);
  return it == backwards_.end() ? nullptr : &it->second->planned;
}

// ---- running -------------------------------------------------------------------------------------------------------------------------

std::string FunctionCapture::misfit(const CallLook& look, const Tensors& arguments) const {
  if (std::string why = look_.difference(look); !why.empty()) return why;
  for (const auto& [cell, before] : outside_)
    if (const TensorLook now(*cell, kind_); !(now == before))
      return fmt::format("a tensor from outside was {}, is {}", before.text(), now.text());
  for (const RecordedFunction::Grad& g : recorded_.grads)
    if (!g.is_dropped_first && meta_of(g, arguments).grad.defined() != g.was_defined)
      return fmt::format(".grad of a leaf is {}", g.was_defined ? "not there" : "there");
  return {};
}

std::vector<Number> FunctionCapture::read_numbers(bool first) const {
  std::vector<Number> numbers = numbers_;
  if (first) return numbers;
  std::vector<Scalar> read;
  for (const RecordedFunction::Numbers& n : recorded_.numbers) {
    read.resize(static_cast<size_t>(n.count));
    n.read(read);
    for (int i = 0; i < n.count; ++i)
      numbers[static_cast<size_t>(n.first + i)] = read[static_cast<size_t>(i)].number();
  }
  recorded_.graph.symbols.evaluate(numbers);
  return numbers;
}

std::vector<ir::Binding> FunctionCapture::bind(const Tensors& arguments) const {
  std::vector<ir::Binding> bindings;
  bindings.reserve(recorded_.inputs.size());
  for (const RecordedFunction::Input& input : recorded_.inputs) {
    ir::Binding b;
    b.tensor = input.argument >= 0 ? arguments[static_cast<size_t>(input.argument)]
               : input.grad_of     ? input.grad_of->need_meta().grad
                                   : input.captured;
    b.hook = input.hook;
    b.leaf = input.leaf.get();
    bindings.push_back(std::move(b));
  }
  return bindings;
}

void FunctionCapture::give_grads(const Tensors& arguments, const Tensors& outputs) const {
  for (const RecordedFunction::Grad& g : recorded_.grads)
    if (g.output != RecordedFunction::Grad::kKept)
      meta_of(g, arguments).grad =
          g.output == RecordedFunction::Grad::kNone ? Tensor() : outputs[static_cast<size_t>(g.output)];
}

void FunctionCapture::write_back(const std::vector<ir::Binding>& bindings, const Tensors& outputs) const {
  for (const ir::OutsideWrite& w : recorded_.writes) {
    TensorImpl* value = outputs[static_cast<size_t>(w.output)].get();
    const Tensor& target = bindings[static_cast<size_t>(w.input)].tensor;
    if (value->storage() == target.impl().storage())  // computed there
      target.impl().storage()->bump_version();
    else
      run_into({&ops::info<ops::Clone>, {&value, 1}, nullptr, {}, 1}, target);
  }
}

Tensors FunctionCapture::run(const Tensors& arguments, bool first, SourceLocation where) {
  const std::vector<Number> numbers = read_numbers(first);
  for (const RecordedFunction::Grad& g : recorded_.grads)
    if (g.is_dropped_first) meta_of(g, arguments).grad.reset();
  std::vector<ir::Binding> bindings = bind(arguments);
  Tensors outputs;
  {
    NoGradGuard no_grad;
    outputs = plan_->run(bindings, numbers);
    give_grads(arguments, outputs);
    write_back(bindings, outputs);
  }
  Tensors results(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(recorded_.results));
  if (!backwards_.empty()) {
    auto saved = std::make_shared<Saved>();
    saved->capture = shared_from_this();
    for (int32_t s : recorded_.saved) {
      saved->values.push_back(outputs[static_cast<size_t>(s)]);
      saved->versions.push_back(saved->values.back().version());
    }
    saved->bindings = std::move(bindings);
    saved->numbers = numbers;
    link(results, std::move(saved), where);
  }
  for (const Passed& p : passed_)
    results[p.result] = p.argument >= 0 ? arguments[static_cast<size_t>(p.argument)] : p.tensor;
  return results;
}

// ---- gradients -----------------------------------------------------------------------------------------------------------------------

namespace {

struct CompiledAttrs {
  const Tensors* results;  // while the record is made
};

void give_results(const Call& call, Tensor* results) {
  std::ranges::copy(*call.attrs_as<CompiledAttrs>().results, results);
}

// One opaque node, whatever the emitter: of a captured backward, too.
void compiled_vjp(RuleContext& rule) {
  Record& record = rule.record();
  Tensors held;
  for (int i = 0; i < rule.outputs(); ++i) held.push_back(rule.grad(i));
  std::vector<TensorImpl*> operands;
  for (const Tensor& t : held) operands.push_back(t.get());
  FunctionBackwardAttrs attrs{&record};
  Tensors results(record.operands);
  Emitter::current().emit({&ops::function_backward, operands, &attrs, record.where, record.operands},
                          results.data());
  for (int i = 0; i < record.operands; ++i)
    if (rule.needs(i)) rule.give(i, std::move(results[static_cast<size_t>(i)]));
}

constexpr OpInfo compiled_info() {
  OpInfo info;
  info.name = "compiled";
  info.traits = static_cast<uint32_t>(Trait::effect);
  info.arity = info.outputs = -1;
  info.attrs_size = sizeof(CompiledAttrs);
  info.run_on_host = give_results;
  info.vjp = compiled_vjp;
  info.host_backward = FunctionCapture::run_backward;
  info.doc = "a compiled function";
  return info;
}
constinit const OpInfo compiled = compiled_info();

// Replays a graph with gradient mode as it was when each node was recorded.
class RecordedModes final : public PassThrough {
 public:
  RecordedModes(Emitter& below, const std::vector<bool>& off) : PassThrough("RecordedModes", below), off_(off) {}
  void emit(const Call& call, Tensor* results) override {
    const AutoGradMode mode(!off_[next_++] && GradMode::is_enabled());
    below().emit(call, results);
  }

 private:
  const std::vector<bool>& off_;
  size_t next_ = 0;
};

}  // namespace

// Each result gets a cell of its own, which leads to the record.
void FunctionCapture::link(Tensors& results, std::shared_ptr<Saved> saved, SourceLocation where) {
  for (Tensor& r : results) {
    if (!r.defined()) continue;
    RefPtr<TensorImpl> cell = TensorImpl::make();
    cell->alias(r.impl());
    r = Tensor(std::move(cell));
  }
  std::vector<TensorImpl*> operands;
  for (int32_t input : inputs_) operands.push_back(saved->bindings[static_cast<size_t>(input)].tensor.get());
  const Tensors computed = results;
  CompiledAttrs attrs{&computed};
  eager_emitter().emit({&compiled, operands, &attrs, where, static_cast<int>(results.size())}, results.data());
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined() || !results[i].impl().grad_fn) continue;
    TensorImpl& cell = results[i].impl();
    cell.grad_fn->need_hooks().saved = saved;
    if (is_differentiable_[i]) continue;
    cell.grad_fn.reset();
    cell.requires_grad = false;
  }
}

const FunctionCapture::Backward& FunctionCapture::backward_for(std::span<TensorImpl* const> cotangents) {
  std::vector<bool> has_gradient(results_.size());
  for (size_t i = 0; i < has_gradient.size(); ++i) has_gradient[i] = is_differentiable_[i] && cotangents[i];
  std::lock_guard lock(mutex_);
  std::unique_ptr<Backward>& backward = backwards_[has_gradient];
  if (!backward) backward = record_backward(has_gradient);
  return *backward;
}

std::vector<ir::Binding> FunctionCapture::bind_backward(const Backward& backward,
                                                        std::span<TensorImpl* const> cotangents,
                                                        const Tensors& saved) const {
  std::vector<ir::Binding> bindings;
  for (const RecordedFunction::Input& input : backward.recorded.inputs) {
    ir::Binding b;
    if (input.argument >= 0)
      b.tensor = Tensor(RefPtr<TensorImpl>(cotangents[static_cast<size_t>(input.argument)]));
    else
      b.tensor = input.saved >= 0 ? saved[static_cast<size_t>(input.saved)] : input.captured;
    b.hook = input.hook;
    bindings.push_back(std::move(b));
  }
  return bindings;
}

void FunctionCapture::run_backward(Record& record, std::span<TensorImpl* const> operands, Tensor* results) {
  const auto saved = record.hooks ? std::static_pointer_cast<Saved>(record.hooks->saved) : nullptr;
  if (!saved)
    fail(Category::backward_twice_freed, "compiled",
         "its saved values were released by an earlier backward. Hint: retain_graph", record.where);
  for (size_t i = 0; i < saved->values.size(); ++i)
    if (saved->values[i].version() != saved->versions[i])
      fail(Category::version_mismatch, "compiled",
           fmt::format("a saved value, {}, was written to: version {}, saved at {}", describe(saved->values[i]),
                       saved->values[i].version(), saved->versions[i]),
           record.where);
  FunctionCapture& capture = *saved->capture;
  const Backward& backward = capture.backward_for(operands);
  std::vector<Number> numbers = backward.numbers;
  for (const auto& [there, here] : backward.recorded.forward_numbers)
    numbers[static_cast<size_t>(here)] = saved->numbers[static_cast<size_t>(there)];
  backward.recorded.graph.symbols.evaluate(numbers);
  Tensors gradients;
  if (GradMode::is_enabled()) {
    RecordedModes emitter(Emitter::current(), capture.recorded_.no_grad);
    const Tensors outputs = ir::replay(capture.recorded_.graph, emitter, saved->bindings, saved->numbers);
    Tensors values;
    for (int32_t s : capture.recorded_.saved) values.push_back(outputs[static_cast<size_t>(s)]);
    gradients = ir::replay(backward.recorded.graph, Emitter::current(),
                           capture.bind_backward(backward, operands, values), numbers);
  } else {
    gradients = backward.plan->run(capture.bind_backward(backward, operands, saved->values), numbers);
  }
  for (size_t i = 0; i < gradients.size(); ++i)
    if (record.edge(static_cast<int>(i))) results[i] = std::move(gradients[i]);
}

}  // namespace retrograd
