// See tracer/compile_step.h; start reading at RecordedStep::run.
#include "tracer/compile_step.h"

#include <algorithm>
#include <list>
#include <mutex>

#include <fmt/format.h>

#include "engine/runner.h"
#include "engine/taper.h"
#include "ir/verify.h"
#include "ops/shape_ops.h"
#include "tracer/function_recorder.h"
#include "tracer/key.h"
#include "tracer/plan.h"

namespace retrograd {
namespace {

// What a recording depends on, of one tensor: an argument, or one from outside.
struct Look {
  TensorType type;
  IntList strides;
  bool requires_grad = false, is_leaf = true;
  uint64_t hooks = 0;

  explicit Look(const TensorImpl& x)
      : type(x.type()), requires_grad(x.requires_grad), is_leaf(x.is_leaf()), hooks(hooks_of(x)) {
    for (int i = 0; i < x.rank(); ++i) strides.push_back(x.strides()[i]);
  }
  bool operator==(const Look& o) const {
    return type == o.type && std::ranges::equal(strides, o.strides) && requires_grad == o.requires_grad &&
           is_leaf == o.is_leaf && hooks == o.hooks;
  }
  std::string text() const {
    return to_string(type) + (requires_grad ? ", requires a gradient" : "") + (hooks ? ", hooked" : "");
  }

 private:
  // Hooks are recorded as the objects that they are.
  static uint64_t hooks_of(const TensorImpl& x) {
    if (!x.meta || !x.meta->has_hooks()) return 0;
    uint64_t hash = 1;
    for (const HookList* list : {&x.meta->tensor_hooks, &x.meta->pre_hooks, &x.meta->post_hooks,
                                 &x.meta->post_accumulate_hooks}) {
      for (const RefPtr<Hook>& h : list->all())
        if (h->is_live()) hash = hash * 0x9E3779B97F4A7C15u + reinterpret_cast<uintptr_t>(h.get());
      hash = hash * 31 + 7;
    }
    return hash;
  }
};

struct Signature {
  std::vector<Look> arguments;
  bool gradients = GradMode::is_enabled();
  SavedTensorHooks* pair = default_saved_tensor_hooks().get();

  explicit Signature(const Tensors& given) {
    for (const Tensor& t : given) arguments.emplace_back(t.impl());
  }
  /// What differs from `now`, in words; empty when nothing does.
  std::string difference(const Signature& now) const {
    if (arguments.size() != now.arguments.size())
      return fmt::format("{} arguments, now {}", arguments.size(), now.arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i)
      if (!(arguments[i] == now.arguments[i]))
        return fmt::format("argument {} was {}, is {}", i, arguments[i].text(), now.arguments[i].text());
    if (gradients != now.gradients) return now.gradients ? "gradients are on" : "gradients are off";
    return pair == now.pair ? "" : "other default saved-tensor hooks";
  }
};

// What a run replaces in .grad of a leaf.
AutogradMeta& meta_of(const RecordedFunction::Grad& g, const Tensors& arguments) {
  return (g.argument >= 0 ? arguments[static_cast<size_t>(g.argument)].impl() : *g.leaf).need_meta();
}

// One recording with its plan.
class StepCapture {
 public:
  StepCapture(const RecordedStep::Function& function, const Tensors& arguments, Signature signature)
      : signature_(std::move(signature)) {
    for (size_t i = 0; i < arguments.size(); ++i)
      if (!arguments[i].is_leaf() || signature_.arguments[i].hooks)
        throw Error(Category::unsupported,
                    fmt::format("argument {} of a recorded step has {}. Hint: detach it", i,
                                arguments[i].is_leaf() ? "hooks" : "a history"));
    record(function, arguments);
    ir::verify(recorded_.graph);
    for (const RecordedFunction::Input& input : recorded_.inputs)
      if (input.captured.defined() && !input.grad_of) outside_.emplace_back(input.captured.get(), Look(input.captured.impl()));
    for (int32_t i = 0; i < recorded_.graph.symbols.size(); ++i)
      numbers_.push_back(recorded_.graph.symbols.expr(i).hint);
    if (numbers_.empty()) numbers_.resize(1);
    sources_.resize(recorded_.inputs.size(), Source{Source::Kind::constant});
    plan_ = std::make_unique<Plan>(recorded_.graph, sources_, std::vector<RuleRun>{}, log_, numbers_,
                                   cpu_executor(), written_inputs(arguments));
  }
  StepCapture(const StepCapture&) = delete;

  const ir::Graph& graph() const { return recorded_.graph; }

  /// Why it cannot serve a call; empty when it can.
  std::string misfit(const Signature& signature, const Tensors& arguments) const {
    if (std::string why = signature_.difference(signature); !why.empty()) return why;
    for (const auto& [cell, look] : outside_)
      if (const Look now(*cell); !(now == look))
        return fmt::format("a tensor from outside was {}, is {}", look.text(), now.text());
    for (const RecordedFunction::Grad& g : recorded_.grads)
      if (!g.is_dropped_first && meta_of(g, arguments).grad.defined() != g.was_defined)
        return fmt::format(".grad of a leaf is {}", g.was_defined ? "not there" : "there");
    return {};
  }

  /// `first`: with the numbers that the recording has read.
  Tensors run(const Tensors& arguments, bool first) {
    std::vector<Number> numbers = numbers_;
    if (!first) read_numbers(numbers);
    for (const RecordedFunction::Grad& g : recorded_.grads)
      if (g.is_dropped_first) meta_of(g, arguments).grad.reset();
    const std::vector<ir::Binding> bindings = bind(arguments);
    Tensors outputs;
    {
      NoGradGuard no_grad;
      outputs = plan_->run(bindings, numbers);
      give_grads(arguments, outputs);
      write_back(bindings, outputs);
    }
    outputs.resize(recorded_.results);
    return outputs;
  }

 private:
  void record(const RecordedStep::Function& function, const Tensors& arguments) {
    FunctionRecorder recorder(recorded_.graph);
    recorded_.graph.name = "step";
    Tensors stand_ins;
    for (const Tensor& a : arguments) stand_ins.push_back(recorder.argument(a));
    Taper taper(recorder);
    Emitter::Scope scope(taper);
    BackwardRunner::Scope eager(nullptr);
    recorder.finish(function(stand_ins), recorded_);
  }

  void read_numbers(std::vector<Number>& numbers) const {
    std::vector<Scalar> read;
    for (const RecordedFunction::Numbers& n : recorded_.numbers) {
      read.resize(static_cast<size_t>(n.count));
      n.read(read);
      for (int i = 0; i < n.count; ++i)
        numbers[static_cast<size_t>(n.first + i)] = read[static_cast<size_t>(i)].number();
    }
    recorded_.graph.symbols.evaluate(numbers);
  }

  std::vector<ir::Binding> bind(const Tensors& arguments) const {
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

  std::vector<WrittenInput> written_inputs(const Tensors& arguments) const {
    std::vector<WrittenInput> written;
    const std::vector<ir::Binding> bindings = bind(arguments);
    for (const RecordedFunction::Write& w : recorded_.writes)
      if (bindings[static_cast<size_t>(w.input)].tensor.is_contiguous())
        written.push_back({recorded_.graph.inputs()[static_cast<size_t>(w.input)].value,
                           recorded_.graph.outputs()[static_cast<size_t>(w.output)]});
    return written;
  }

  void give_grads(const Tensors& arguments, const Tensors& outputs) const {
    for (const RecordedFunction::Grad& g : recorded_.grads)
      if (g.output != RecordedFunction::Grad::kKept)
        meta_of(g, arguments).grad =
            g.output == RecordedFunction::Grad::kNone ? Tensor() : outputs[static_cast<size_t>(g.output)];
  }

  void write_back(const std::vector<ir::Binding>& bindings, const Tensors& outputs) const {
    for (const RecordedFunction::Write& w : recorded_.writes) {
      TensorImpl* value = outputs[static_cast<size_t>(w.output)].get();
      const Tensor& target = bindings[static_cast<size_t>(w.input)].tensor;
      if (value->storage() == target.impl().storage())  // computed there
        target.impl().storage()->bump_version();
      else
        run_into({&ops::info<ops::Clone>, {&value, 1}, nullptr, {}, 1}, target);
    }
  }

  Signature signature_;
  RecordedFunction recorded_;
  std::vector<std::pair<TensorImpl*, Look>> outside_;  // kept alive by recorded_
  std::vector<Number> numbers_;
  std::vector<Source> sources_;
  DriveLog log_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace

struct RecordedStep::State {
  std::mutex mutex;
  std::list<std::shared_ptr<StepCapture>> captures;  // the last used first
  std::shared_ptr<StepCapture> last;
  Stats stats;
  std::string reason;

  std::shared_ptr<StepCapture> find(const Signature& signature, const Tensors& arguments, std::string& why) {
    std::lock_guard lock(mutex);
    why = "first call";
    for (auto it = captures.begin(); it != captures.end(); ++it) {
      std::string misfit = (*it)->misfit(signature, arguments);
      if (misfit.empty()) {
        captures.splice(captures.begin(), captures, it);
        ++stats.hits;
        return captures.front();
      }
      if (it == captures.begin()) why = std::move(misfit);
    }
    return nullptr;
  }
  void keep(std::shared_ptr<StepCapture> capture, std::string why) {
    std::lock_guard lock(mutex);
    ++stats.captures;
    reason = std::move(why);
    captures.push_front(std::move(capture));
    if (captures.size() <= kCaptures) return;
    captures.pop_back();
    ++stats.evictions;
  }
};

RecordedStep::RecordedStep() : state_(std::make_unique<State>()) {}
RecordedStep::~RecordedStep() = default;
RecordedStep::RecordedStep(RecordedStep&&) noexcept = default;
RecordedStep& RecordedStep::operator=(RecordedStep&&) noexcept = default;

Tensors RecordedStep::run(const Function& function, const Tensors& arguments) {
  if (&Emitter::current() != &eager_emitter() || autograd::DetectAnomalyGuard::is_enabled())
    return function(arguments);
  const Signature signature(arguments);
  std::string why;
  std::shared_ptr<StepCapture> capture = state_->find(signature, arguments, why);
  const bool first = !capture;
  if (first) {
    capture = std::make_shared<StepCapture>(function, arguments, signature);
    state_->keep(capture, std::move(why));
  }
  {
    std::lock_guard lock(state_->mutex);
    state_->last = capture;
    state_->stats.nodes = static_cast<int64_t>(capture->graph().nodes().size());
  }
  return capture->run(arguments, first);
}

RecordedStep::Stats RecordedStep::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->stats;
}

std::shared_ptr<const ir::Graph> RecordedStep::graph() const {
  std::lock_guard lock(state_->mutex);
  if (!state_->last) return nullptr;
  return {state_->last, &state_->last->graph()};
}

std::string RecordedStep::last_capture_reason() const {
  std::lock_guard lock(state_->mutex);
  return state_->reason;
}

void RecordedStep::reset() {
  std::lock_guard lock(state_->mutex);
  state_->captures.clear();
  state_->last.reset();
  state_->stats = {};
  state_->reason.clear();
}

}  // namespace retrograd
