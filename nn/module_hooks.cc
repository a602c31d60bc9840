// See nn/module_hooks.h.
#include "nn/module_hooks.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "engine/function.h"
#include "engine/node.h"
#include "nn/module.h"

namespace retrograd::inline v0::nn {

struct detail::ModuleHook {
  HookKind kind;
  uint64_t id;
  bool traceable = false;
  std::shared_ptr<const HookFunction> run;
};

void RemovableHandle::remove() {
  if (const std::shared_ptr<detail::ModuleState> state = state_.lock()) state->remove(id_);
}

RemovableHandle& RemovableHandle::set_traceable(bool on) {
  if (const std::shared_ptr<detail::ModuleState> state = state_.lock()) {
    for (detail::ModuleHook& hook : state->hooks)
      if (hook.id == id_) hook.traceable = on;
    ++state->hook_changes;
  }
  return *this;
}

namespace detail {

ModuleState::ModuleState(Module* module, std::string name, bool is_training)
    : module(module), name(std::move(name)), is_training(is_training) {}
ModuleState::~ModuleState() = default;

uint64_t ModuleState::add(HookKind kind, HookFunction f, bool prepend) {
  const uint64_t id = ++hook_changes;
  hooks.insert(prepend ? hooks.begin() : hooks.end(),
               {kind, id, false, std::make_shared<const HookFunction>(std::move(f))});
  has_hooks = true;
  return id;
}

void ModuleState::remove(uint64_t id) {
  if (std::erase_if(hooks, [&](const ModuleHook& h) { return h.id == id; })) ++hook_changes;
  has_hooks = !hooks.empty();
}

const Tensor& only_result(const Tensors& results) {
  if (results.size() != 1)
    throw Error(
        Category::hook_bad_result,
        fmt::format("hook of a module: it takes one tensor, and there are {}. Hint: take const Tensors&",
                    results.size()));
  return results[0];
}

namespace {

// Puts the defined tensors of a hook's answer in the places of `values`.
void replace(Tensors& values, const Tensors& answer, const Module& module) {
  if (answer.empty()) return;
  if (answer.size() != values.size())
    throw Error(Category::hook_bad_result, fmt::format("{}: a hook returns {} tensors in place of {}",
                                                       module.name(), answer.size(), values.size()));
  for (size_t i = 0; i < values.size(); ++i)
    if (answer[i].defined()) values[i] = answer[i];
}

Tensors answer_of(const ModuleHook& hook, Module& module, const Tensors& first, const Tensors& second) {
  const CallScope::Suspend own_lines;
  return (*hook.run)(module, first, second);
}

// The record that backward hooks sit on.
struct BackwardHookFunction : Function<BackwardHookFunction> {
  static constexpr bool is_traceable = true;
  static Tensors forward(AutogradContext*, const Tensors& values) { return values; }
  static Tensors backward(AutogradContext*, const Tensors& grads) { return grads; }
  static Tensors jvp(AutogradContext*, const Tensors& tangents) { return tangents; }
};

}  // namespace

// The backward hooks of one call. What its two records have in common is kept for each thread that runs a backward,
// since several may run a recorded one.
class BackwardHooks : public std::enable_shared_from_this<BackwardHooks> {
 public:
  // `kept`: shares the module, if it can be shared.
  BackwardHooks(std::shared_ptr<ModuleState> state, std::shared_ptr<Module> kept)
      : state_(std::move(state)), kept_(std::move(kept)) {}

  void add(const ModuleHook& hook) {
    (hook.kind == HookKind::backward ? backward_ : backward_pre_).push_back(hook);
  }

  void put_on_inputs(Tensors& inputs) {
    inputs_ = inputs.size();
    input_places_ = pass_through(inputs);
    if (input_places_.empty()) return;
    set_up(inputs[input_places_[0]].grad_fn().register_hook(
        [self = shared_from_this()](const Tensors& grads, const Tensors&) {
          return self->grad_inputs(grads);
        }));
  }

  void put_on_results(Tensors& results) {
    results_ = results.size();
    result_places_ = pass_through(results);
    if (result_places_.empty()) return;
    set_up(results[result_places_[0]].grad_fn().register_prehook(
        [self = shared_from_this()](const Tensors& grads) { return self->grad_outputs(grads); }));
  }

 private:
  using Places = std::vector<size_t>;

  // Sends the values that require a gradient through a record; returns their places.
  static Places pass_through(Tensors& values) {
    Places places;
    if (!GradMode::is_enabled()) return places;
    Tensors passed;
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i].requires_grad()) places.push_back(i), passed.push_back(values[i]);
    if (places.empty()) return places;
    passed = BackwardHookFunction::apply(passed);
    for (size_t i = 0; i < places.size(); ++i) values[places[i]] = passed[i];
    return places;
  }

  void set_up(HookHandle handle) const {
    const auto is_traceable = [](const ModuleHook& h) { return h.traceable; };
    handle.set_traceable(std::ranges::all_of(backward_, is_traceable) &&
                         std::ranges::all_of(backward_pre_, is_traceable));
  }

  Module& module() const {
    if (!state_->module)
      throw Error(
          Category::hook_forbidden,
          "full backward hook: its module is gone. Hint: keep the module until the backward has run, or "
          "make it with std::make_shared");
    return *state_->module;
  }

  static Tensors spread(const Tensors& values, const Places& places, size_t count) {
    Tensors all(count);
    for (size_t i = 0; i < places.size(); ++i) all[places[i]] = values[i];
    return all;
  }
  static Tensors gathered(const Tensors& all, const Places& places) {
    Tensors values;
    for (const size_t place : places) values.push_back(all[place]);
    return values;
  }

  Tensors grad_outputs(const Tensors& grads) {
    Tensors all = spread(grads, result_places_, results_);
    for (const ModuleHook& hook : backward_pre_) replace(all, answer_of(hook, module(), all, {}), module());
    if (input_places_.empty())
      only_show(all);
    else
      with_kept([&](Kept& kept) { kept[std::this_thread::get_id()] = all; });
    return gathered(all, result_places_);
  }

  // No input requires a gradient, so there is none to replace.
  void only_show(const Tensors& grad_outputs) const {
    for (const ModuleHook& hook : backward_) {
      const Tensors answer = answer_of(hook, module(), Tensors(inputs_), grad_outputs);
      if (std::ranges::any_of(answer, &Tensor::defined))
        throw Error(
            Category::hook_bad_result,
            module().name() + ": a full backward hook returns a gradient for an input that requires none");
    }
  }

  // Without gradients of results the backward came another way (a double backward), and the hooks are not for it.
  Tensors grad_inputs(const Tensors& grads) {
    Tensors outputs;
    bool is_ours = false;
    with_kept([&](Kept& kept) {
      const auto at = kept.find(std::this_thread::get_id());
      if ((is_ours = at != kept.end())) outputs = std::move(kept.extract(at).mapped());
    });
    if (!is_ours) return {};
    Tensors all = spread(grads, input_places_, inputs_);
    for (const ModuleHook& hook : backward_) replace(all, answer_of(hook, module(), all, outputs), module());
    return gathered(all, input_places_);
  }

  using Kept = std::map<std::thread::id, Tensors>;
  template <class F>
  void with_kept(const F& f) {
    const std::scoped_lock lock(mutex_);
    f(grad_outputs_);
  }

  const std::shared_ptr<ModuleState> state_;
  const std::shared_ptr<Module> kept_;
  std::vector<ModuleHook> backward_, backward_pre_;
  Places input_places_, result_places_;
  size_t inputs_ = 0, results_ = 0;
  std::mutex mutex_;
  Kept grad_outputs_;
};

HookedCall::HookedCall(const Module& module) : state_(module.state_), hooks_(state_->hooks) {}

template <class F>
void HookedCall::each(HookKind kind, const F& f) const {
  for (const ModuleHook& hook : hooks_)
    if (hook.kind == kind) f(hook);
}

HookedCall::~HookedCall() {
  each(HookKind::leave, [&](const ModuleHook& hook) { (*hook.run)(*state_->module, {}, {}); });
}

void HookedCall::before(Tensors& inputs) {
  Module& module = *state_->module;
  each(HookKind::forward_pre,
       [&](const ModuleHook& hook) { replace(inputs, answer_of(hook, module, inputs, {}), module); });
  for (const HookKind kind : {HookKind::backward, HookKind::backward_pre})
    each(kind, [&](const ModuleHook& hook) {
      if (!backward_) backward_ = std::make_shared<BackwardHooks>(state_, module.pointer());
      backward_->add(hook);
    });
  if (backward_) backward_->put_on_inputs(inputs);
  inputs_ = inputs;
}

void HookedCall::after(Tensors& results) {
  Module& module = *state_->module;
  each(HookKind::forward,
       [&](const ModuleHook& hook) { replace(results, answer_of(hook, module, inputs_, results), module); });
  if (backward_) backward_->put_on_results(results);
}

}  // namespace detail
}  // namespace retrograd::nn
