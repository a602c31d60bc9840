// The scopes of default pairs; see engine/saved_tensor_hooks.h.
#include "engine/saved_tensor_hooks.h"

namespace retrograd::inline v0 {
namespace {

RefPtr<SavedTensorHooks> allowed(RefPtr<SavedTensorHooks> hooks, SourceLocation where) {
  require_function(static_cast<bool>(hooks), "SavedTensorHooksGuard", where);
  if (const auto* disabled = OpenScopes<DisableSavedTensorHooks::Scoped>::innermost())
    fail(Category::hook_forbidden, "SavedTensorHooksGuard", disabled->message, where);
  return hooks;
}

DisableSavedTensorHooks::Scoped without_pair(std::string message, SourceLocation where) {
  if (OpenScopes<RefPtr<SavedTensorHooks>>::innermost())
    fail(Category::hook_forbidden, "DisableSavedTensorHooks",
         "a pair of saved-tensor hooks is open: " + message, where);
  return {std::move(message)};
}

}  // namespace

bool SavedTensorHooks::does_the_same(const SavedTensorHooks& other) const {
  if (this == &other) return true;
  if (!traceable || !other.traceable || filter != other.filter || cache_key != other.cache_key) return false;
  return !cache_key.empty() || (code_ && code_ == other.code_);
}

uint64_t SavedTensorHooks::identity() const {
  if (!cache_key.empty()) return std::hash<std::string>()(cache_key);
  return reinterpret_cast<uintptr_t>(code_ ? code_ : this);
}

void SavedTensorHooks::visit(std::any& payload, PayloadVisitor& visitor) {
  Tensor* const tensor = std::any_cast<Tensor>(&payload);
  if (!tensor) detail::refuse_payload();
  visit_payload(*tensor, visitor);
}

void detail::refuse_payload() {
  throw Error(
      Category::bad_argument,
      "saved_tensor_hooks: a traceable pair packs tensors, numbers, strings, and vectors, optionals, pairs "
      "and "
      "tuples of these. Hint: give the class of the payload a function parts() that returns std::tie of its "
      "members");
}

SavedTensorHooksGuard::SavedTensorHooksGuard(RefPtr<SavedTensorHooks> hooks, SourceLocation where)
    : guard_(allowed(std::move(hooks), where)) {}

DisableSavedTensorHooks::DisableSavedTensorHooks(std::string message, SourceLocation where)
    : guard_(without_pair(std::move(message), where)) {}

}  // namespace retrograd
