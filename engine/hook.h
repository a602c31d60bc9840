// Hook: one closure registered on a gradient, and the handle that removes it.
//
// Kinds, in the order in which they run (docs/hooks.md):
//   tensor           (g) -> g'                        on the gradient of one tensor
//   pre              (grad_outputs) -> grad_outputs'  before a record's rule
//   post             (grad_inputs, grad_outputs) -> grad_inputs'  after it
//   post_accumulate  (leaf)                           after accumulation into leaf.grad
// An undefined tensor, or an empty list, as a result keeps the old gradients; so does a closure that returns nothing,
// and only reads.
// An opaque hook is any closure: it runs on the host at its place. A traceable hook is made of tensor functions only
// and is inlined when a backward is recorded, so it is planned and differentiated with the rest.
// Removal marks the hook and releases its closure. Lists drop marked hooks when they have grown, so a hook may remove
// any hook at any time.
#pragma once

#include <atomic>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/callable.h"
#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

struct Hook : RefCounted {
  enum class Kind : uint8_t { tensor, pre, post, post_accumulate };

  Kind kind = Kind::tensor;
  bool traceable = false;
  bool takes_grad = false;    // kind post_accumulate: it uses .grad up, and drops it
  uint32_t output_nr = 0;     // kind tensor on a record: the number of the result
  SourceLocation where = {};  // of its registration
  std::atomic<bool> removed{false};
  std::function<Tensor(const Tensor&)> tensor;
  std::function<Tensors(const Tensors&)> pre;
  std::function<Tensors(const Tensors&, const Tensors&)> post;
  std::function<void(const Tensor&)> post_accumulate;

  static void destroy(Hook* hook) noexcept { delete hook; }
  bool is_live() const { return !removed.load(std::memory_order_acquire); }
  /// It is not called again. When no call of it is running, the captures of the closure are released; they may include
  /// the very tensor that has the hook.
  void remove() {
    removed = true;
    if (calls == 0) release();
  }
  /// A call of the hook; false when it was removed before.
  class Call {
   public:
    explicit Call(Hook& hook) : hook_(hook) { ++hook.calls; }
    ~Call() {
      if (--hook_.calls == 0 && hook_.removed) hook_.release();
    }
    Call(const Call&) = delete;
    explicit operator bool() const { return !hook_.removed; }

   private:
    Hook& hook_;
  };

 private:
  // The closures are released at the end of this function: they may hold the last reference to the hook.
  void release() {
    if (released.exchange(true)) return;
    const auto closures = std::tuple(std::exchange(tensor, {}), std::exchange(pre, {}),
                                     std::exchange(post, {}), std::exchange(post_accumulate, {}));
  }
  std::atomic<int> calls{0};
  std::atomic<bool> released{false};
};

namespace detail {

template <class F, class R, class... Args>
constexpr bool answers() {
  if constexpr (std::is_invocable_v<F&, Args...>) {
    using Answer = std::invoke_result_t<F&, Args...>;
    return std::is_void_v<R> || std::is_void_v<Answer> || std::is_convertible_v<Answer, R>;
  }
  return false;
}
/// Whether a closure may be a hook R(Args...): it returns R or nothing.
template <class F, class R, class... Args>
inline constexpr bool is_hook = answers<std::remove_reference_t<F>, R, Args...>();

/// The closure as a hook; empty if the closure is empty or cannot be one, which the caller has refused.
template <class R, class... Args, class F>
std::function<R(Args...)> as_hook(F&& f) {
  if (is_empty_function<std::decay_t<F>>(f)) return {};
  if constexpr (!is_hook<F, R, Args...>)
    return {};
  else if constexpr (std::is_void_v<R> || !std::is_void_v<std::invoke_result_t<F&, Args...>>)
    return std::forward<F>(f);
  else
    return [looks = std::decay_t<F>(std::forward<F>(f))](Args... args) mutable {
      looks(args...);
      return R();
    };
}

template <class F>
auto tensor_hook(F&& f) {
  static_assert(
      is_hook<F, Tensor, const Tensor&>,
      "A tensor hook is [](const Tensor& grad) { ...; return new_grad; } with a Tensor, or returns nothing.");
  return as_hook<Tensor, const Tensor&>(std::forward<F>(f));
}
template <class F>
auto pre_hook(F&& f) {
  static_assert(
      is_hook<F, Tensors, const Tensors&>,
      "A pre-hook is [](const Tensors& grads) { ...; return new_grads; } with Tensors, or returns nothing.");
  return as_hook<Tensors, const Tensors&>(std::forward<F>(f));
}
template <class F>
auto post_hook(F&& f) {
  static_assert(is_hook<F, Tensors, const Tensors&, const Tensors&>,
                "A post-hook is [](const Tensors& grad_inputs, const Tensors& grad_outputs) { ...; return "
                "new_grad_inputs; } "
                "with Tensors, or returns nothing.");
  return as_hook<Tensors, const Tensors&, const Tensors&>(std::forward<F>(f));
}
template <class F>
auto leaf_hook(F&& f) {
  static_assert(is_hook<F, void, const Tensor&>, "A post-accumulate hook is [](const Tensor& leaf) { ... }.");
  return as_hook<void, const Tensor&>(std::forward<F>(f));
}
template <class F>
auto multi_grad_hook(F&& f) {
  static_assert(is_hook<F, void, const Tensors&>, "A multi-grad hook is [](const Tensors& grads) { ... }.");
  return as_hook<void, const Tensors&>(std::forward<F>(f));
}

}  // namespace detail

/// How often this thread has added a hook, a retained gradient or a pair of saved-tensor hooks to anything, or removed
/// a traceable hook: a backward that runs a captured graph checks whether user code has changed what is still to come.
inline constinit thread_local uint64_t annotation_changes = 0;

/// Removes a hook (or the group of hooks that one registration made). Copies refer to the same hook; destroying a
/// handle does nothing.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(RefPtr<Hook> hook) : hooks_{std::move(hook)} {}
  void remove() {
    for (const RefPtr<Hook>& hook : hooks_) {
      hook->remove();
      annotation_changes += hook->traceable;  // a captured graph contains its body, and cannot skip it
    }
  }
  /// Lets a traced backward inline the hook (see the head of the file).
  HookHandle& set_traceable(bool on = true) {
    for (const RefPtr<Hook>& hook : hooks_) hook->traceable = on;
    ++annotation_changes;
    return *this;
  }
  /// Of a post-accumulate hook: it drops the gradient that it has used, so what comes later cannot use it.
  HookHandle& set_takes_grad() {
    for (const RefPtr<Hook>& hook : hooks_) hook->takes_grad = true;
    return *this;
  }
  void join(const HookHandle& other) {
    hooks_.insert(hooks_.end(), other.hooks_.begin(), other.hooks_.end());
  }

 private:
  std::vector<RefPtr<Hook>> hooks_;
};

/// The hooks of one kind at one place, in order of registration.
class HookList {
 public:
  HookHandle add(RefPtr<Hook> hook) {
    ++annotation_changes;
    if (hooks_.size() >= sweep_at_) {
      std::erase_if(hooks_, [](const RefPtr<Hook>& h) { return !h->is_live(); });
      sweep_at_ = 2 * hooks_.size() + 4;
    }
    hooks_.push_back(hook);
    return HookHandle(std::move(hook));
  }
  /// The hooks to run now. This is a copy: hooks may be added and removed while they run; added ones run from the next
  /// backward on.
  std::vector<RefPtr<Hook>> snapshot() const { return hooks_; }
  bool empty() const { return hooks_.empty(); }
  const std::vector<RefPtr<Hook>>& all() const { return hooks_; }
  void append(const HookList& other) {
    hooks_.insert(hooks_.end(), other.hooks_.begin(), other.hooks_.end());
  }

 private:
  std::vector<RefPtr<Hook>> hooks_;
  // Removed hooks are dropped at this size, which keeps the amortised cost of adding constant.
  size_t sweep_at_ = 4;
};

// ---- of a tensor (engine/tensor.h)

template <class F>
HookHandle Tensor::register_hook(F&& hook, SourceLocation where) const {
  return add_hook(detail::tensor_hook(std::forward<F>(hook)), where);
}
template <class F>
HookHandle Tensor::register_post_accumulate_grad_hook(F&& hook, SourceLocation where) const {
  return add_post_accumulate_hook(detail::leaf_hook(std::forward<F>(hook)), where);
}
template <class F>
HookHandle Tensor::register_accumulate_grad_prehook(F&& hook, SourceLocation where) const {
  return add_accumulate_prehook(detail::pre_hook(std::forward<F>(hook)), where);
}
template <class F>
HookHandle Tensor::register_accumulate_grad_posthook(F&& hook, SourceLocation where) const {
  return add_accumulate_posthook(detail::post_hook(std::forward<F>(hook)), where);
}

}  // namespace retrograd
#pragma GCC visibility pop
