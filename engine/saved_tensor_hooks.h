// Pack and unpack hooks: they process a tensor between the record that saves it and the backward that needs it.
//
// pack(tensor) -> payload runs when a record saves a tensor, with gradients off, and may return anything: a smaller
// tensor, a file name, an index. unpack(payload) -> tensor runs when the rule first asks for the value, and must return
// the dtype and shape that was saved.
// Gradients bypass the pair: the unpacked value replaces the saved one in the graph, however lossy the pair is.
// A thread-local stack holds the default pair for what is saved in its scope; only the innermost applies.
// A `traceable` pair consists of tensor functions only. A recorded function contains both of its functions, a captured
// backward its unpack, as operations that are planned and fused like all others. Its payload has tensors, which are
// values of the graph, and constants: see visit_payload().
#pragma once

#include <any>
#include <bit>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/callable.h"
#include "engine/open_scopes.h"
#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class Prefetcher;
class Region;

/// Is shown the parts of a payload, in their order.
class PayloadVisitor {
 public:
  /// A tensor, perhaps undefined; it may be replaced by one that stands for it.
  virtual void tensor(Tensor& tensor) = 0;
  /// A part of what identifies the constants.
  virtual void constant(uint64_t word) = 0;

 protected:
  ~PayloadVisitor() = default;
};

/// Which values a traceable pair packs in compile() and compile_step(); elsewhere it packs all. Where values are packed
/// with loss, the choice changes gradients.
enum class PackFilter : uint8_t {
  all,
  no_static,  // not the tensors that the function captures: parameters, buffers
  donated,  // only intermediate values: not those that the caller, a parameter or a result holds anyway. A step
            // differentiates before its results are known: they count as intermediate there
};

class SavedTensorHooks : public RefCounted {
 public:
  virtual ~SavedTensorHooks() = default;
  virtual std::any pack(const Tensor& tensor) = 0;
  virtual Tensor unpack(const std::any& payload) = 0;
  bool traceable = false;
  /// Traceable pairs with the same key, not empty, do the same: one recording serves them all. Without a key, pairs of
  /// the same callables that capture nothing do, and each other object has recordings of its own.
  std::string cache_key;
  bool does_the_same(const SavedTensorHooks& other) const;
  /// Equal for pairs that do the same.
  uint64_t identity() const;
  /// No other pair does the same.
  bool is_unique() const { return cache_key.empty() && !code_; }
  /// Whether pack leaves a tensor alone for the memory that it is in: pairs that do the same may differ in this.
  virtual bool keeps(const Tensor&) const { return false; }
  PackFilter filter = PackFilter::all;
  /// Shows the parts of a payload of a traceable pair. Error(bad_argument) if it has parts that visit_payload() does
  /// not take.
  virtual void visit(std::any& payload, PayloadVisitor& visitor);
  /// Whether both functions read nothing but their arguments, write to no tensor that others can see, and do not query
  /// the running backward. A recorded function guards against such actions of other pairs, which splits a device's
  /// graphs of launches into more parts.
  bool is_pure = false;
  static void destroy(SavedTensorHooks* hooks) noexcept { delete hooks; }
  /// For pairs that fetch values from elsewhere (hooks/prefetcher.h); null: unpack has nothing to begin in advance.
  virtual Prefetcher* prefetcher() { return nullptr; }
  /// The checkpointed region whose saved values the pair recomputes (engine/region.h); null for all other pairs.
  virtual Region* region() { return nullptr; }

 protected:
  /// Stands for the code of a pair without state.
  const void* code_ = nullptr;
};

/// The parts of a payload: a Tensor; a number, an enum or a string; a vector, an optional, a pair or a tuple of parts; or
/// a class with a function `auto parts() { return std::tie(...); }`. Error(bad_argument) for others.
template <class T>
void visit_payload(T& part, PayloadVisitor& visitor);

namespace detail {
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;
template <class Tuple, size_t... I>
constexpr bool are_references(std::index_sequence<I...>) {
  const auto is_reference = []<class E>(std::type_identity<E>) {
    return std::is_lvalue_reference_v<E> && !std::is_const_v<std::remove_reference_t<E>>;
  };
  return (is_reference(std::type_identity<std::tuple_element_t<I, Tuple>>()) && ...);
}
template <class T>
constexpr bool has_parts() {
  if constexpr (requires(T & x) { x.parts(); }) {
    using Parts = std::remove_cvref_t<decltype(std::declval<T&>().parts())>;
    if constexpr (is_tuple<Parts>)
      return are_references<Parts>(std::make_index_sequence<std::tuple_size_v<Parts>>());
  }
  return false;
}
[[noreturn]] void refuse_payload();
}  // namespace detail

template <class T>
void visit_payload(T& part, PayloadVisitor& visitor) {
  using Part = std::remove_const_t<T>;
  const auto visit_each = [&](auto&... each) { (visit_payload(each, visitor), ...); };
  if constexpr (std::is_same_v<T, Tensor>) {
    visitor.tensor(part);
  } else if constexpr (std::is_enum_v<Part> || std::is_integral_v<Part>) {
    visitor.constant(static_cast<uint64_t>(part));
  } else if constexpr (std::is_floating_point_v<Part>) {
    visitor.constant(std::bit_cast<uint64_t>(static_cast<double>(part)));
  } else if constexpr (std::is_same_v<Part, std::string>) {
    visitor.constant(part.size());
    for (const char c : part) visitor.constant(static_cast<uint64_t>(c));
  } else if constexpr (std::is_same_v<Part, std::vector<bool>>) {
    visitor.constant(part.size());
    for (const bool each : part) visitor.constant(each);
  } else if constexpr (detail::is_vector<Part>) {
    visitor.constant(part.size());
    for (auto& each : part) visit_payload(each, visitor);
  } else if constexpr (detail::is_optional<Part>) {
    visitor.constant(part.has_value());
    if (part) visit_payload(*part, visitor);
  } else if constexpr (detail::is_tuple<Part>) {
    std::apply(visit_each, part);
  } else if constexpr (detail::has_parts<T>()) {
    std::apply(visit_each, part.parts());
  } else {
    detail::refuse_payload();
  }
}

namespace detail {
template <class Pack, class Unpack>
class SavedTensorHooksOf final : public SavedTensorHooks {
  using Payload = std::decay_t<std::invoke_result_t<Pack&, const Tensor&>>;

 public:
  SavedTensorHooksOf(Pack pack, Unpack unpack) : pack_(std::move(pack)), unpack_(std::move(unpack)) {
    if constexpr (std::is_empty_v<Pack> && std::is_empty_v<Unpack>) code_ = &own_code;
  }
  std::any pack(const Tensor& tensor) override { return std::any(pack_(tensor)); }
  Tensor unpack(const std::any& payload) override { return unpack_(std::any_cast<const Payload&>(payload)); }
  void visit(std::any& payload, PayloadVisitor& visitor) override {
    visit_payload(std::any_cast<Payload&>(payload), visitor);
  }

 private:
  static constexpr char own_code = 0;
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
