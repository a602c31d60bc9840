// Pack and unpack hooks: they process a tensor between the record that saves it and the backward that needs it.
//
// pack(tensor) -> payload runs when a record saves a tensor, with gradients off, and may return anything: a smaller
// tensor, a file name, an index. unpack(payload) -> tensor runs when the rule first asks for the value, and must return
// the dtype and shape that was saved.
// Gradients bypass the pair: the unpacked value replaces the saved one in the graph, however lossy the pair is.
// A thread-local stack holds the default pair for what is saved in its scope; only the innermost applies.
// A pair made with `traceable` consists of tensor functions only, with a Tensor as payload, and is inlined when a
// function is recorded (tracer/function/compile.h); a captured backward calls it like any other.
#pragma once

#include <any>
#include <functional>
#include <string>
#include <type_traits>

#include "engine/callable.h"
#include "engine/open_scopes.h"
#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class Prefetcher;
class Region;

class SavedTensorHooks : public RefCounted {
 public:
  virtual ~SavedTensorHooks() = default;
  virtual std::any pack(const Tensor& tensor) = 0;
  virtual Tensor unpack(const std::any& payload) = 0;
  bool traceable = false;
  /// Whether both functions read nothing but their arguments, write to no tensor that others can see, and do not query
  /// the running backward. A recorded function guards against such actions of other pairs, which splits a device's
  /// graphs of launches into more parts.
  bool is_pure = false;
  static void destroy(SavedTensorHooks* hooks) noexcept { delete hooks; }
  /// For pairs that fetch values from elsewhere (hooks/prefetcher.h); null: unpack has nothing to begin in advance.
  virtual Prefetcher* prefetcher() { return nullptr; }
  /// The checkpointed region whose saved values the pair recomputes (engine/region.h); null for all other pairs.
  virtual Region* region() { return nullptr; }
};

namespace detail {
template <class Pack, class Unpack>
class SavedTensorHooksOf final : public SavedTensorHooks {
  using Payload = std::decay_t<std::invoke_result_t<Pack&, const Tensor&>>;

 public:
  SavedTensorHooksOf(Pack pack, Unpack unpack) : pack_(std::move(pack)), unpack_(std::move(unpack)) {}
  std::any pack(const Tensor& tensor) override { return std::any(pack_(tensor)); }
  Tensor unpack(const std::any& payload) override { return unpack_(std::any_cast<const Payload&>(payload)); }

 private:
  Pack pack_;
  Unpack unpack_;
};

template <class Pack>
constexpr bool can_pack() {
  if constexpr (std::is_invocable_v<Pack&, const Tensor&>)
    return !std::is_void_v<std::invoke_result_t<Pack&, const Tensor&>>;
  return false;
}
template <class Pack, class Unpack>
constexpr bool can_unpack() {
  if constexpr (can_pack<Pack>()) {
    using Payload = std::decay_t<std::invoke_result_t<Pack&, const Tensor&>>;
    if constexpr (std::is_copy_constructible_v<Payload>)
      return std::is_invocable_r_v<Tensor, Unpack&, const Payload&>;
  }
  return false;
}
}  // namespace detail

/// A pair from two callables: pack(const Tensor&) -> P, unpack(const P&) -> Tensor, P copyable. Error(bad_argument) for
/// an empty one.
template <class Pack, class Unpack>
RefPtr<SavedTensorHooks> saved_tensor_hooks(Pack pack, Unpack unpack, bool traceable = false,
                                            SourceLocation where = SourceLocation::current()) {
  require_function(!detail::is_empty_function(pack) && !detail::is_empty_function(unpack),
                   "saved_tensor_hooks", where);
  static_assert(detail::can_pack<Pack>(), "A pack hook is [](const Tensor& saved) { ...; return payload; }.");
  static_assert(!detail::can_pack<Pack>() || detail::can_unpack<Pack, Unpack>(),
                "An unpack hook is [](const P& payload) { ...; return tensor; } with P what the pack hook "
                "returns, which can be copied.");
  RefPtr<SavedTensorHooks> hooks;
  if constexpr (detail::can_unpack<Pack, Unpack>()) {
    hooks = RefPtr<SavedTensorHooks>::adopt(
        new detail::SavedTensorHooksOf<Pack, Unpack>(std::move(pack), std::move(unpack)));
    hooks->traceable = traceable;
  }
  return hooks;
}

/// Makes `hooks` the default pair of this thread while in scope. Error(hook_forbidden) where hooks are disabled.
class SavedTensorHooksGuard {
 public:
  explicit SavedTensorHooksGuard(RefPtr<SavedTensorHooks> hooks,
                                 SourceLocation where = SourceLocation::current());
  template <class Pack, class Unpack>
  SavedTensorHooksGuard(Pack pack, Unpack unpack, SourceLocation where = SourceLocation::current())
      : SavedTensorHooksGuard(saved_tensor_hooks(std::move(pack), std::move(unpack), false, where), where) {}

 private:
  OpenScopes<RefPtr<SavedTensorHooks>>::Guard guard_;
};

/// While in scope, opening a SavedTensorHooksGuard on this thread fails with `message`. Nests; the outer message
/// returns afterwards.
class DisableSavedTensorHooks {
 public:
  explicit DisableSavedTensorHooks(std::string message, SourceLocation where = SourceLocation::current());

  struct Scoped {
    std::string message;
  };

 private:
  OpenScopes<Scoped>::Guard guard_;
};

namespace detail {
/// While pack or unpack runs, there is no default pair: otherwise the tensors that they save would be packed
/// recursively without end.
class NoDefaultHooks {
  OpenScopes<RefPtr<SavedTensorHooks>>::Guard guard_{nullptr};
};
}  // namespace detail

/// The default pair of this thread, or null.
inline RefPtr<SavedTensorHooks> default_saved_tensor_hooks() {
  const RefPtr<SavedTensorHooks>* hooks = OpenScopes<RefPtr<SavedTensorHooks>>::innermost();
  return hooks ? *hooks : nullptr;
}

}  // namespace retrograd
#pragma GCC visibility pop
