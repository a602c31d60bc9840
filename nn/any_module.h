// AnyModule: a module of any class whose forward is called by what is given, found at run time. Sequential is made of
// them.
//
//   AnyModule any(std::make_shared<Net>());        // or a holder, or a module that can be copied
//   Tensor y = any.forward(x);
//   auto out = any.forward<LSTM::Output>(x, state);
//
// Data: the module, and a function that knows its class. Arguments and results travel as std::any, a tensor always as a
// Tensor. A call with one tensor fits any forward that can be called so; others must have one forward that is no
// template, and get as many arguments as it has parameters, of just their types (an optional takes what it holds).
// Arguments that do not fit are an Error(bad_argument) that names the module.
#pragma once

#include <any>
#include <array>
#include <span>
#include <typeinfo>

#include "nn/module.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {
namespace detail {

using Anys = std::span<const std::any>;

[[noreturn]] void fail_arguments(const Module& module, Anys given, size_t wanted);
[[noreturn]] void fail_argument(const Module& module, size_t number, const std::type_info& given,
                                const std::type_info& wanted);
[[noreturn]] void fail_result(const std::type_info& given, const std::type_info& wanted);

template <class T>
std::any to_any(const T& value) {
  if constexpr (parts::AnyTensor<T>)
    return static_cast<const Tensor&>(value);
  else if constexpr (std::is_same_v<T, Operand>)
    return value.is_scalar() ? std::any(value.scalar()) : std::any(value.tensor());
  else
    return value;
}

/// Argument number i, for a parameter of class T.
template <class T>
T argument(const Module& module, Anys given, size_t i) {
  const std::any& value = given[i];
  if (const T* const fits = std::any_cast<T>(&value)) return *fits;
  if constexpr (parts::is_of<T, std::optional>)
    if (const auto* held = std::any_cast<typename T::value_type>(&value)) return *held;
  fail_argument(module, i, value.type(), typeid(T));
}
template <>
inline Operand argument<Operand>(const Module& module, Anys given, size_t i) {
  if (const Tensor* const tensor = std::any_cast<Tensor>(&given[i])) return *tensor;
  if (const Scalar* const number = std::any_cast<Scalar>(&given[i])) return *number;
  fail_argument(module, i, given[i].type(), typeid(Tensor));
}

template <class M, class... Parameters, size_t... i>
std::any call_with(M& module, Anys given, std::index_sequence<i...>) {
  if (given.size() != sizeof...(Parameters)) fail_arguments(module, given, sizeof...(Parameters));
  return to_any(M::call(module, argument<std::decay_t<Parameters>>(module, given, i)...));
}
template <class M, class C, class R, class... P>
std::any call_as(R (C::*)(P...), M& module, Anys given) {
  return call_with<M, P...>(module, given, std::index_sequence_for<P...>());
}
template <class M, class C, class R, class... P>
std::any call_as(R (C::*)(P...) const, M& module, Anys given) {
  return call_with<M, P...>(module, given, std::index_sequence_for<P...>());
}

template <class M>
concept TakesTensor = requires(M& m, const Operand& x) {
  m.forward(x);
}
|| requires(M& m, const Tensor& x) { m.forward(x); };
template <class M>
concept HasOneForward = requires {
  &M::forward;
};

template <class M>
std::any call_any(Module& base, Anys given) {
  static_assert(TakesTensor<M> || HasOneForward<M>, "the module has no forward that can be called from here");
  M& module = static_cast<M&>(base);
  if constexpr (TakesTensor<M>)
    if (given.size() == 1)
      if (const Tensor* const x = std::any_cast<Tensor>(&given[0]))
        return to_any(M::call(module, Operand(*x)));
  if constexpr (HasOneForward<M>)
    return call_as(&M::forward, module, given);
  else
    fail_arguments(module, given, 1);
}

/// The value in `result`, which must be an R.
template <class R>
R result_as(std::any&& result) {
  if (R* const value = std::any_cast<R>(&result)) return std::move(*value);
  fail_result(result.type(), typeid(R));
}

}  // namespace detail

class AnyModule {
 public:
  /// An empty one.
  AnyModule() = default;
  /// Error(bad_argument) for an empty pointer or holder.
  template <class M>
  AnyModule(const std::shared_ptr<M>& module) : module_(checked(module)), call_(detail::call_any<M>) {}
  template <class M>
  AnyModule(std::unique_ptr<M> module) : AnyModule(std::shared_ptr<M>(std::move(module))) {}
  template <class M>
  AnyModule(const ModuleHolder<M>& holder) : AnyModule(holder.ptr()) {}
  template <std::derived_from<Module> M>
  AnyModule(const M& module) : AnyModule(std::make_shared<M>(module)) {}

  /// Calls the module, with its hooks. Error(bad_argument) for arguments that it does not take, and a result that is no
  /// R.
  template <class R = Tensor, class... Args>
  R forward(const Args&... args) const {
    return detail::result_as<R>(any_forward(args...));
  }
  template <class... Args>
  std::any any_forward(const Args&... args) const {
    const std::array<std::any, sizeof...(Args)> given{detail::to_any(args)...};
    return call(given);
  }
  std::any call(std::span<const std::any> given) const { return call_(*ptr(), given); }

  bool is_empty() const { return !module_; }
  const std::shared_ptr<Module>& ptr() const { return checked(module_); }
  /// Errors(bad_argument) when it is of another class.
  template <class M>
  std::shared_ptr<M> ptr() const {
    if (std::shared_ptr<M> module = std::dynamic_pointer_cast<M>(ptr())) return module;
    refuse_class(typeid(M));
  }
  template <class M>
  M& get() const {
    return *ptr<M>();
  }
  const std::type_info& type_info() const {
    const Module& module = *ptr();
    return typeid(module);
  }
  /// With a clone() of the module.
  AnyModule clone() const { return with(ptr()->clone()); }
  /// With another module of the same class.
  AnyModule with(std::shared_ptr<Module> module) const {
    AnyModule other = *this;
    other.module_ = std::move(module);
    return other;
  }

 private:
  template <class M>
  static const std::shared_ptr<M>& checked(const std::shared_ptr<M>& module) {
    if (!module) fail(Category::bad_argument, "AnyModule", "there is no module in it");
    return module;
  }
  [[noreturn]] void refuse_class(const std::type_info& wanted) const;

  std::shared_ptr<Module> module_;
  std::any (*call_)(Module&, detail::Anys) = nullptr;
};

/// A module, and its name in a container; without one it is numbered.
class NamedAnyModule {
 public:
  NamedAnyModule(std::string name, AnyModule module) : name_(std::move(name)), module_(std::move(module)) {}
  template <class M>
  requires std::is_convertible_v<M, AnyModule> NamedAnyModule(M&& module)
      : module_(std::forward<M>(module)) {}
  const std::string& name() const { return name_; }
  AnyModule& module() { return module_; }
  const AnyModule& module() const { return module_; }

 private:
  std::string name_;
  AnyModule module_;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
