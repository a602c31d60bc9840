// Hooks of modules: functions that Module::call() runs around forward, and in the backward of what forward computed.
// The functions that register them are members of Module (nn/module.h); what they mean is PyTorch's.
//
// Data: a ModuleState has what outlives changes of a module's tree and may be referred to from outside: whether it is
// in training, its hooks, and a count of their changes. Recorded functions and handles hold it weakly. A call, and its
// backward, run the hooks that the call began with: one that is added or removed meanwhile counts from the next call
// on.
//
// Full backward hooks sit on two records of a call, both identities: one that all its inputs that require a gradient go
// through, and one of its results. The call's module must still exist in the backward; one that is shared, or a member
// of one that is, is kept.
//
// Limits: the tensors that hooks see are those in tensors, std::optional, vectors, pairs, tuples and structs of these
// (engine/members_of.h). Hooks replace them one for one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/hook.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

class Module;

enum class HookKind : uint8_t {
  forward_pre,   // (module, inputs, {}) -> inputs'
  forward,       // (module, inputs, results) -> results'
  leave,         // (module, {}, {}): after forward and its hooks, also when they have thrown; does not throw
  backward_pre,  // (module, grad_outputs, {}) -> grad_outputs'
  backward,      // (module, grad_inputs, grad_outputs) -> grad_inputs'
};

namespace detail {

/// A hook of any kind; an empty answer keeps what there was.
using HookFunction = std::function<Tensors(Module&, const Tensors&, const Tensors&)>;

struct ModuleHook;

struct ModuleState {
  explicit ModuleState(Module* module, std::string name = {}, bool is_training = true);
  ~ModuleState();

  Module* module;    // null when it is gone
  std::string name;  // that was given to it, or none
  bool is_training;
  bool has_hooks = false;
  uint64_t hook_changes = 0;
  std::vector<ModuleHook> hooks;

  /// Adds a hook, and returns its number.
  uint64_t add(HookKind kind, HookFunction f, bool prepend);
  void remove(uint64_t id);
};

/// The closure of a user as a hook of inputs, (module, tensors), and of results, (module, tensors, tensors). It returns
/// Tensors, a Tensor that is the only one, or nothing.
inline Tensors hook_answer(Tensors all) { return all; }
inline Tensors hook_answer(Tensor only) { return {std::move(only)}; }

template <class F, class... Args>
Tensors run_hook(const F& f, Args&... args) {
  if constexpr (std::is_void_v<std::invoke_result_t<const F&, Args&...>>)
    return f(args...), Tensors();
  else
    return hook_answer(f(args...));
}

template <class F>
HookFunction input_hook(F&& f) {
  require_function(!retrograd::detail::is_empty_function<std::decay_t<F>>(f), "hook of a module", {});
  return [f = std::decay_t<F>(std::forward<F>(f))](Module& module, const Tensors& given, const Tensors&) {
    return run_hook(f, module, given);
  };
}

/// Error(hook_bad_result) unless there is one.
const Tensor& only_result(const Tensors& results);

template <class F>
HookFunction result_hook(F&& f) {
  require_function(!retrograd::detail::is_empty_function<std::decay_t<F>>(f), "hook of a module", {});
  return [f = std::decay_t<F>(std::forward<F>(f))](Module& module, const Tensors& given,
                                                   const Tensors& results) {
    if constexpr (std::is_invocable_v<const std::decay_t<F>&, Module&, const Tensors&, const Tensors&>)
      return run_hook(f, module, given, results);
    else
      return run_hook(f, module, given, only_result(results));
  };
}

}  // namespace detail

/// Removes a hook. Copies refer to the same hook; destroying a handle does nothing, and neither does a handle that is
/// used when the module is gone.
class RemovableHandle {
 public:
  RemovableHandle() = default;
  RemovableHandle(std::weak_ptr<detail::ModuleState> state, uint64_t id)
      : state_(std::move(state)), id_(id) {}
  void remove();
  /// Of a backward hook: it consists of tensor functions, so a backward that is recorded inlines it (engine/hook.h).
  /// Inlined are those of a call of which all are traceable.
  RemovableHandle& set_traceable(bool on = true);

 private:
  std::weak_ptr<detail::ModuleState> state_;
  uint64_t id_ = 0;
};

namespace detail {

class BackwardHooks;

/// A call of a module that has hooks.
class HookedCall {
 public:
  explicit HookedCall(const Module& module);
  ~HookedCall();
  HookedCall(const HookedCall&) = delete;
  HookedCall& operator=(const HookedCall&) = delete;

  /// Runs what comes before forward; replaces tensors.
  void before(Tensors& inputs);
  /// Runs what comes after it.
  void after(Tensors& results);

 private:
  /// Calls f(hook) for the hooks of this kind, in order.
  template <class F>
  void each(HookKind kind, const F& f) const;

  const std::shared_ptr<ModuleState> state_;
  const std::vector<ModuleHook> hooks_;  // that the call began with
  Tensors inputs_;
  std::shared_ptr<BackwardHooks> backward_;  // null without such hooks
};

}  // namespace detail
}  // namespace retrograd::nn
#pragma GCC visibility pop
