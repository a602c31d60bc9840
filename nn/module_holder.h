// ModuleHolder<M>: a shared pointer to a module that is used like the module, as in libtorch. Copies refer to the same
// module.
//
//   ModuleHolder<Net> net(64, 10);      // makes Net(64, 10), or Net(nullptr, "", 64, 10)
//   Tensor y = net(x);                  // calls it, with its hooks
//   net->parameters();
//   ModuleHolder<Net> later{nullptr};   // empty; later = register_module("later", ModuleHolder<Net>(64, 10));
//
// Data: the pointer. What is used of an empty holder is an Error(bad_argument).
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/error.h"
#include "engine/random.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class Operand;
class Tensor;

namespace nn {

class Module;

namespace detail {

/// Whether a module of class M is made of these arguments, and the parent and the name that classes of this library
/// take.
template <class M, class... Args>
inline constexpr bool takes_parent =
    !std::is_constructible_v<M, Args...> && std::is_constructible_v<M, Module*, std::string, Args...>;

/// A module that is the root of its tree.
template <class M, class... Args>
std::unique_ptr<M> make_root(Args&&... args) {
  if constexpr (takes_parent<M, Args...>)
    return std::make_unique<M>(static_cast<Module*>(nullptr), std::string(), std::forward<Args>(args)...);
  else
    return std::make_unique<M>(std::forward<Args>(args)...);
}

/// While it lives, draws of initial values leave the default generator as it was.
struct KeptRandomState {
  KeptRandomState() = default;
  ~KeptRandomState() { default_generator().set_state(before); }
  KeptRandomState(const KeptRandomState&) = delete;
  const GeneratorState before = default_generator().state();
};

/// Copies of the modules of a container: one of each.
class ModuleCopies {
 public:
  std::shared_ptr<Module> of(const std::shared_ptr<Module>& module);

 private:
  std::vector<std::pair<std::shared_ptr<Module>, std::shared_ptr<Module>>> known_;
};

/// The class of the module that an M is, or holds.
template <class M>
struct Held {
  using Type = M;
};
template <class M>
requires requires { typename M::ContainedType; }
struct Held<M> {
  using Type = typename M::ContainedType;
};

}  // namespace detail

template <class Contained>
class ModuleHolder {
 public:
  using ContainedType = Contained;

  /// Makes a module without arguments.
  ModuleHolder() : impl_(detail::make_root<Contained>()) {}
  /// An empty one.
  ModuleHolder(std::nullptr_t) {}
  ModuleHolder(std::shared_ptr<Contained> module) : impl_(std::move(module)) {}
  /// Makes a module of these arguments.
  template <class Head, class... Tail>
  requires(sizeof...(Tail) > 0 ||
           !(std::is_base_of_v<ModuleHolder, std::remove_cvref_t<Head>> ||
             std::is_convertible_v<Head&&, std::shared_ptr<Contained>>)) explicit ModuleHolder(Head&& head,
                                                                                               Tail&&... tail)
      : impl_(detail::make_root<Contained>(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}

  bool is_empty() const noexcept { return !impl_; }
  explicit operator bool() const noexcept { return !is_empty(); }
  Contained* operator->() { return get(); }
  const Contained* operator->() const { return get(); }
  Contained& operator*() { return *get(); }
  const Contained& operator*() const { return *get(); }
  Contained* get() { return ptr().get(); }
  const Contained* get() const { return ptr().get(); }
  const std::shared_ptr<Contained>& ptr() const {
    if (!impl_)
      fail(Category::bad_argument, "ModuleHolder",
           "it is empty. Hint: assign it what register_module() returns, or make it without nullptr");
    return impl_;
  }

  /// Calls the module, with its hooks.
  template <class... Rest>
  auto operator()(Operand input, const Rest&... rest) const {
    return Contained::call(*ptr(), input, rest...);
  }
  template <class First, class... Rest>
  requires(!std::is_base_of_v<Tensor, std::remove_cvref_t<First>>) auto operator()(
      const First& first, const Rest&... rest) const {
    return Contained::call(*ptr(), first, rest...);
  }
  auto operator()() const { return Contained::call(*ptr()); }

  /// (*holder)[index], of a container.
  template <class Index>
  decltype(auto) operator[](const Index& index) const {
    return (*ptr())[index];
  }

 private:
  std::shared_ptr<Contained> impl_;
};

template <class Contained>
std::ostream& operator<<(std::ostream& out, const ModuleHolder<Contained>& holder) {
  return out << *holder;
}

}  // namespace nn
}  // namespace retrograd
#pragma GCC visibility pop
