// Hook: one closure registered on a gradient, and the handle that removes it.
//
// Kinds, in the order in which they run (docs/hooks.md):
//   tensor           (g) -> g'                        on the gradient of one tensor
//   pre              (grad_outputs) -> grad_outputs'  before a record's rule
//   post             (grad_inputs, grad_outputs) -> grad_inputs'  after it
//   post_accumulate  (leaf)                           after accumulation into leaf.grad
// An undefined tensor, or an empty list, as a result keeps what was there.
// Opaque hooks are any closure: they run on the host at their place. A traceable hook is made of tensor functions only and is inlined
// when a backward is recorded, so it is planned and differentiated with the rest.
// Removal only marks the hook: lists drop marked hooks when they are next changed, so a hook may remove any hook at any time.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "engine/tensor.h"

namespace retrograd {

struct Hook : RefCounted {
  enum class Kind : uint8_t { tensor, pre, post, post_accumulate };

  Kind kind = Kind::tensor;
  bool traceable = false;
  uint32_t output_nr = 0;  // kind tensor on a record: which result
  std::atomic<bool> removed{false};
  std::function<Tensor(const Tensor&)> tensor;
  std::function<Tensors(const Tensors&)> pre;
  std::function<Tensors(const Tensors&, const Tensors&)> post;
  std::function<void(const Tensor&)> post_accumulate;

  static void destroy(Hook* hook) noexcept { delete hook; }
  bool is_live() const { return !removed.load(std::memory_order_acquire); }
};

/// How often this thread has added a hook, a retained gradient or a pair of saved-tensor hooks to anything, or removed a traceable hook: a
/// backward that runs a captured graph looks whether the code it called has changed what is still to come.
inline constinit thread_local uint64_t annotation_changes = 0;

/// Removes a hook (or the group of hooks that one registration made); copies refer to the same, and letting a handle go does nothing.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(RefPtr<Hook> hook) : hooks_{std::move(hook)} {}
  void remove() {
    for (const RefPtr<Hook>& hook : hooks_) {
      hook->removed.store(true, std::memory_order_release);
      annotation_changes += hook->traceable;  // a captured graph has its body, and cannot pass it over
    }
  }
  /// Lets a traced backward inline the hook (see the head of the file).
  HookHandle& set_traceable(bool on = true) {
    for (const RefPtr<Hook>& hook : hooks_) hook->traceable = on;
    ++annotation_changes;
    return *this;
  }
  void join(const HookHandle& other) {
    hooks_.insert(hooks_.end(), other.hooks_.begin(), other.hooks_.end());
  }

 private:
  std::vector<RefPtr<Hook>> hooks_;
};

/// Hooks of one kind at one place, in order of registration.
class HookList {
 public:
  HookHandle add(RefPtr<Hook> hook) {
    ++annotation_changes;
    std::erase_if(hooks_, [](const RefPtr<Hook>& h) { return !h->is_live(); });
    hooks_.push_back(hook);
    return HookHandle(std::move(hook));
  }
  /// The hooks to run now. A copy: hooks may be added and removed while they run; those added run from the next backward on.
  std::vector<RefPtr<Hook>> snapshot() const { return hooks_; }
  bool empty() const { return hooks_.empty(); }
  const std::vector<RefPtr<Hook>>& all() const { return hooks_; }
  void append(const HookList& other) {
    hooks_.insert(hooks_.end(), other.hooks_.begin(), other.hooks_.end());
  }

 private:
  std::vector<RefPtr<Hook>> hooks_;
};

}  // namespace retrograd
