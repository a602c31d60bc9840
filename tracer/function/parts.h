// Parts of arguments and results of compiled functions: the tensors in a value, and what else it holds.
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

}  // namespace detail
}  // namespace retrograd
#pragma GCC visibility pop
