// The thread-local stack of default pairs; see hooks/saved_tensor_hooks.h.
#include "hooks/saved_tensor_hooks.h"

#include <vector>

namespace retrograd {
namespace {

struct Stack {
  std::vector<RefPtr<SavedTensorHooks>> pairs;
  bool disabled = false;
  std::string message;
};

Stack& stack() {
  static thread_local Stack instance;
  return instance;
}

using detail::innermost;

}  // namespace

SavedTensorHooksGuard::SavedTensorHooksGuard(RefPtr<SavedTensorHooks> hooks, SourceLocation where) {
  require_function(static_cast<bool>(hooks), "SavedTensorHooksGuard", where);
  if (stack().disabled) fail(Category::hook_forbidden, "SavedTensorHooksGuard", stack().message, where);
  innermost = hooks.get();
  stack().pairs.push_back(std::move(hooks));
}

SavedTensorHooksGuard::~SavedTensorHooksGuard() {
  stack().pairs.pop_back();
  innermost = stack().pairs.empty() ? nullptr : stack().pairs.back().get();
}

DisableSavedTensorHooks::DisableSavedTensorHooks(std::string message, SourceLocation where)
    : previous_(stack().message), was_disabled_(stack().disabled) {
  if (!stack().pairs.empty())
    fail(Category::hook_forbidden, "DisableSavedTensorHooks",
         "a pair of saved-tensor hooks is open: " + message, where);
  stack().disabled = true;
  stack().message = std::move(message);
}

DisableSavedTensorHooks::~DisableSavedTensorHooks() {
  stack().disabled = was_disabled_;
  stack().message = std::move(previous_);
}

detail::NoDefaultHooks::NoDefaultHooks() {
  stack().pairs.emplace_back();
  innermost = nullptr;
}

detail::NoDefaultHooks::~NoDefaultHooks() {
  stack().pairs.pop_back();
  innermost = stack().pairs.empty() ? nullptr : stack().pairs.back().get();
}

}  // namespace retrograd
