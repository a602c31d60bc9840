// Module::call: a module's forward between its hooks. Included by nn/module.h.
//
// The tensors among inputs and results are found at compile time, in tensors, std::optional, vectors, pairs, tuples and
// structs (engine/members_of.h); everything else is passed on as it is. Without hooks none of this runs.
#pragma once

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "engine/members_of.h"
#include "nn/module.h"
#include "nn/module_holder.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {
namespace detail {

/// module.forward(inputs...); an Operand is given as a Tensor to a forward that takes one.
template <class M, class... Inputs>
decltype(auto) forward(M& module, const Inputs&... inputs) {
  if constexpr (requires { module.forward(inputs...); }) {
    return module.forward(inputs...);
  } else {
    const auto as_tensor = []<class T>(const T& input) -> decltype(auto) {
      if constexpr (std::is_same_v<T, Operand>)
        return input.tensor("forward");
      else
        return (input);
    };
    return module.forward(as_tensor(inputs)...);
  }
}

/// An input that outlives the replacement of its tensors.
template <class T>
struct KeptInput {
  T value;
  T& parts() { return value; }
  const T& given() const { return value; }
};
template <parts::AnyTensor T>
struct KeptInput<T> {
  Tensor value;
  Tensor& parts() { return value; }
  const Tensor& given() const { return value; }
};
template <>
struct KeptInput<Operand> {
  explicit KeptInput(const Operand& input)
      : operand(input), value(input.is_scalar() ? Tensor() : input.tensor()) {}
  Operand operand;
  Tensor value;
  Tensor& parts() { return value; }
  Operand given() const { return operand.is_scalar() ? operand : Operand(value, operand.where()); }
};

template <class T>
using Kept = KeptInput<std::decay_t<const T&>>;

/// Calls f for each defined tensor in a value, in order.
template <class T, class F>
void each_tensor(T& value, const F& f) {
  if constexpr (parts::AnyTensor<T>) {
    if (value.defined()) f(value);
  } else if constexpr (parts::is_of<T, std::optional>) {
    if (value) each_tensor(*value, f);
  } else if constexpr (parts::is_of<T, std::vector>) {
    if constexpr (!std::is_same_v<T, std::vector<bool>>)
      for (auto& item : value) each_tensor(item, f);
  } else if constexpr (parts::is_of<T, std::tuple> || parts::is_of<T, std::pair>) {
    std::apply([&](auto&... items) { (each_tensor(items, f), ...); }, value);
  } else if constexpr (parts::HasMembers<T> ||
                       (std::is_class_v<T> && std::is_aggregate_v<T> && !parts::is_std_array<T>)) {
    std::apply([&](auto&... items) { (each_tensor(items, f), ...); }, parts::members_of(value));
  }
}

// Functions for each_tensor: they list the tensors, and put those of a list in their places.
struct ListTensors {
  Tensors& all;
  void operator()(const Tensor& t) const { all.push_back(t); }
};
struct PutTensors {
  const Tensors& all;
  size_t& next;
  void operator()(Tensor& t) const { t = all[next++]; }
};

// Quick to compile, since there is one for each layer: no tuples, no closures.
template <class M, class... K>
auto call_with_hooks(M& module, K... inputs) {
  HookedCall hooks(module);
  Tensors tensors;
  size_t next = 0;
  (each_tensor(inputs.parts(), ListTensors{tensors}), ...);
  hooks.before(tensors);
  (each_tensor(inputs.parts(), PutTensors{tensors, next}), ...);
  auto result = forward(module, inputs.given()...);
  tensors.clear();
  each_tensor(result, ListTensors{tensors});
  hooks.after(tensors);
  next = 0;
  each_tensor(result, PutTensors{tensors, next});
  return result;
}

}  // namespace detail

template <class M, class... Inputs>
auto Module::call(M& module, const Inputs&... inputs) {
  if (static_cast<const Module&>(module).is_plain()) [[likely]]
    return detail::forward(module, inputs...);
  return detail::call_with_hooks(module, detail::Kept<Inputs>{inputs}...);
}

template <class M>
std::shared_ptr<M> Module::register_module(std::string name, const ModuleHolder<M>& holder) {
  return register_module(std::move(name), holder.ptr());
}
template <class M>
std::shared_ptr<M> Module::replace_module(const std::string& name, const ModuleHolder<M>& holder) {
  return replace_module(name, holder.ptr());
}

}  // namespace retrograd::nn
#pragma GCC visibility pop
