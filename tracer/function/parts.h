// Parts of arguments and results of functions that are compiled or mapped (compile, vmap, func::grad): the tensors in a
// value, and what else it holds.
//
// A value is a tensor; a number, an enumerator or a string; a Device; a std::optional, vector, array, pair, tuple or
// map<string, ...> of values; or a struct of values (engine/members_of.h).
//
// Tensors are inputs of a recording. All other parts of an argument are fixed in it (FixedPart): numbers, lengths, and
// which optionals hold a value. Another fixed part needs another recording. A result is made of tensors only: a number
// in it would be that of the recording.
// Start reading at visit_parts().
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/members_of.h"
#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// A part of an argument that is not a tensor.
struct FixedPart {
  size_t argument;  // its number
  const char* kind;
  Number number = {};
  std::string text = {};

  /// Of the same kind and the same bits.
  bool operator==(const FixedPart& o) const {
    return argument == o.argument && std::string_view(kind) == o.kind && number.kind == o.number.kind &&
           number.i == o.number.i && text == o.text;
  }
};

/// The arguments of a call: their tensors, and what else they hold.
struct CallParts {
  Tensors tensors;
  std::vector<FixedPart> fixed = {};
};

/// What a call gave: the tensors of its result, and the result without them.
struct CallOutcome {
  Tensors tensors;
  std::shared_ptr<const void> form = {};
};

/// A function of the tensors in its arguments.
using FunctionBody = std::function<CallOutcome(const Tensors&)>;

namespace detail {
using namespace parts;

/// Calls visitor.tensor(t) for each tensor in `value`, visitor.structure(kind, number or text) for lengths, keys and
/// whether an optional holds a value, and visitor.fixed(kind, number or text) for each other part, in order.
template <class T, class Visitor>
void visit_parts(T& value, Visitor& visitor) {
  using Value = std::remove_const_t<T>;
  if constexpr (AnyTensor<Value>) {
    visitor.tensor(value);
  } else if constexpr (std::is_same_v<Value, bool>) {
    visitor.fixed("flag", Number::of(value));
  } else if constexpr (std::is_enum_v<Value>) {
    visitor.fixed("enumerator", Number::of(static_cast<int64_t>(value)));
  } else if constexpr (std::integral<Value>) {
    visitor.fixed("number", Number::of(static_cast<int64_t>(value)));
  } else if constexpr (std::is_same_v<Value, float> || std::is_same_v<Value, double>) {
    visitor.fixed("number", Number::of(static_cast<double>(value)));
  } else if constexpr (std::is_same_v<Value, std::string>) {
    visitor.fixed("text", value);
  } else if constexpr (std::is_same_v<Value, Device>) {
    visitor.fixed("device", to_string(value));
  } else if constexpr (is_of<Value, std::optional>) {
    visitor.structure("presence", Number::of(value.has_value()));
    if (value) visit_parts(*value, visitor);
  } else if constexpr (is_of<Value, std::vector>) {
    visitor.structure("length", Number::of(static_cast<int64_t>(value.size())));
    if constexpr (std::is_same_v<Value, std::vector<bool>>)
      for (const bool item : value) visit_parts(item, visitor);
    else
      for (auto& item : value) visit_parts(item, visitor);
  } else if constexpr (is_std_array<Value>) {
    for (auto& item : value) visit_parts(item, visitor);
  } else if constexpr (is_of<Value, std::map>) {
    visitor.structure("length", Number::of(static_cast<int64_t>(value.size())));
    for (auto& [key, item] : value) {
      visitor.structure("key", key);
      visit_parts(item, visitor);
    }
  } else if constexpr (is_of<Value, std::tuple> || is_of<Value, std::pair>) {
    std::apply([&](auto&... items) { (visit_parts(items, visitor), ...); }, value);
  } else {
    static_assert(HasMembers<Value> || std::is_aggregate_v<Value>,
                  "compiled functions take and give tensors, numbers (as arguments), strings, and optionals, vectors, "
                  "arrays, pairs, tuples, maps and structs of these. Capture other objects, or add "
                  "`auto members() { return std::tie(...); }`");
    std::apply([&](auto&... items) { (visit_parts(items, visitor), ...); }, members_of(value));
  }
}

// Collects what an argument consists of.
class ArgumentParts {
 public:
  ArgumentParts(Tensors& tensors, std::vector<FixedPart>& fixed) : tensors_(tensors), fixed_(fixed) {}
  template <class... T>
  void add(T&... arguments) {
    ((visit_parts(arguments, *this), ++argument_), ...);
  }

  void tensor(const Tensor& t) { tensors_.push_back(t); }
  void structure(const char* kind, Number count) { fixed_.push_back({argument_, kind, count, {}}); }
  void structure(const char* kind, std::string text) { fixed_.push_back({argument_, kind, {}, std::move(text)}); }
  void fixed(const char* kind, Number number) { structure(kind, number); }
  void fixed(const char* kind, std::string text) { structure(kind, std::move(text)); }

 private:
  size_t argument_ = 0;
  Tensors& tensors_;
  std::vector<FixedPart>& fixed_;
};

// Puts other tensors into a value, in order.
class TensorReplacer {
 public:
  explicit TensorReplacer(const Tensors& tensors) : tensors_(tensors) {}

  template <AnyTensor T>
  void tensor(T& t) {
    static_assert(std::is_same_v<T, Tensor> || std::is_same_v<T, Condition>, "take a parameter as a Tensor");
    static_cast<Tensor&>(t) = tensors_[next_++];
  }
  void structure(const char*, const auto&) {}
  void fixed(const char*, const auto&) {}

 private:
  const Tensors& tensors_;
  size_t next_ = 0;
};

// Takes the tensors out of a result.
class ResultParts {
 public:
  void tensor(Tensor& t) { tensors.push_back(std::exchange(t, {})); }
  void structure(const char*, const auto&) {}
  template <class T>
  void fixed(const char*, const T&) {
    static_assert(std::is_void_v<T>,
                  "the result of a compiled function is made of tensors: a number would be that of the recording");
  }

  Tensors tensors;
};

/// The type that holds an argument for a parameter.
template <class P, class V = std::remove_cvref_t<P>>
using ArgumentOf = std::conditional_t<AnyTensor<V> || std::is_same_v<V, Operand>, Tensor, V>;

/// The arguments of a function that is not overloaded, as a tuple; void for others.
template <class F>
struct ArgumentsOf {
  using Type = void;
  using First = Tensor;
};
template <class F>
requires requires(F f) { std::function{f}; }
struct ArgumentsOf<F> {
  template <class R, class... P>
  static std::tuple<ArgumentOf<P>...> of(std::function<R(P...)>);
  using Type = decltype(of(std::function{std::declval<F>()}));
  using First = typename decltype([] {
    if constexpr (std::tuple_size_v<Type> == 0)
      return std::type_identity<Tensor>();
    else
      return std::type_identity<std::tuple_element_t<0, Type>>();
  }())::type;
};

/// A wrapper of a function (vmap, func::grad) takes what the function takes.
template <class F>
requires requires { typename F::Wrapped; }
struct ArgumentsOf<F> : ArgumentsOf<typename F::Wrapped> {};

/// An argument, with the source location of the call.
template <class T>
class CallArgument {
 public:
  template <std::convertible_to<T> U>
  CallArgument(U&& value, SourceLocation where = SourceLocation::current())
      : value_(std::forward<U>(value)), where_(where) {}
  T take() && { return std::move(value_); }
  SourceLocation where() const { return where_; }

 private:
  T value_;
  SourceLocation where_;
};

/// The arguments of a call of F as a tuple of values.
template <class F, class First, class... Rest>
auto arguments_for(First first, Rest&&... rest) {
  using Known = typename ArgumentsOf<F>::Type;
  if constexpr (std::is_void_v<Known>)
    return std::tuple<Tensor, ArgumentOf<Rest>...>(std::move(first), std::forward<Rest>(rest)...);
  else
    return [&]<size_t... I>(std::index_sequence<I...>) {
      static_assert(sizeof...(Rest) < std::tuple_size_v<Known>,
                    "more arguments than the function has parameters");
      return std::tuple<std::tuple_element_t<I, Known>...>(std::move(first), std::forward<Rest>(rest)...);
    }
  (std::make_index_sequence<1 + sizeof...(Rest)>());
}

/// Calls `function` with `arguments`, a tuple, through run(body, parts), which sees only tensors and calls the body
/// with others in their place.
template <class F, class Arguments, class Run>
auto call_by_parts(F& function, Arguments arguments, const Run& run) {
  using Result = std::remove_cvref_t<decltype(std::apply(function, arguments))>;
  CallParts parts;
  parts.tensors.reserve(std::tuple_size_v<Arguments>);
  std::apply([&](auto&... a) { ArgumentParts(parts.tensors, parts.fixed).add(a...); }, arguments);
  const FunctionBody body = [&](const Tensors& tensors) -> CallOutcome {
    Arguments given = arguments;
    TensorReplacer replacer(tensors);
    visit_parts(given, replacer);
    if constexpr (std::is_void_v<Result>) {
      std::apply(function, given);
      return {};
    } else {
      Result result = std::apply(function, given);
      ResultParts taken;
      visit_parts(result, taken);
      return {std::move(taken.tensors), std::make_shared<Result>(std::move(result))};
    }
  };
  CallOutcome outcome = run(body, parts);
  if constexpr (!std::is_void_v<Result>) {
    Result result = *static_cast<const Result*>(outcome.form.get());
    TensorReplacer replacer(outcome.tensors);
    visit_parts(result, replacer);
    return result;
  }
}

}  // namespace detail
}  // namespace retrograd
#pragma GCC visibility pop
