// Maps an op's name in the format to the call of a public function.
//
// A binding is one line in the table of its family (bindings/*.cc): {"narrow", call<narrow>}. It calls one of
//   the public function, whose parameters are those of the signature, in order;
//   an elementwise function object (ops/elementwise.h), whose attributes are set by name;
//   a function made for the binding, where the public one is overloaded or differs: {"split", call<split_by>}.
//
// A function with fewer parameters than the signature serves the calls that omit the rest; other calls are Unsupported.
#pragma once

#include <array>
#include <tuple>

#include "ops/elementwise.h"
#include "tests/conformance/arguments.h"

namespace retrograd::conformance {

struct Binding {
  std::string_view op;
  Tensors (*call)(const Arguments& arguments);
};
using BindingList = std::span<const Binding>;

/// The binding of an op, or of the base of an in-place form; null when the engine lacks it.
const Binding* find_binding(std::string_view op);
/// An in-place form that writes no data: it changes how the tensor shows its memory.
bool changes_geometry(std::string_view op);

namespace detail {

inline Tensors results(const Tensor& result) { return {result}; }
inline Tensors results(const Tensors& results) { return results; }
template <class First, class Second>
Tensors results(const std::pair<First, Second>& pair) {
  return {pair.first, pair.second};
}
template <class... T>
Tensors results(const std::tuple<T...>& tuple) {
  return std::apply([](const auto&... each) { return Tensors{each...}; }, tuple);
}

template <class... P>
constexpr size_t own_parameters() {
  return (size_t{0} + ... + (std::is_same_v<std::remove_cvref_t<P>, SourceLocation> ? 0 : 1));
}

template <class P>
std::remove_cvref_t<P> argument(const Arguments& arguments, size_t i) {
  if constexpr (std::is_same_v<std::remove_cvref_t<P>, SourceLocation>)
    return SourceLocation::current();
  else
    return arguments[i].as<std::remove_cvref_t<P>>();
}

template <class R, class... P>
Tensors apply(R (*function)(P...), const Arguments& arguments) {
  arguments.refuse_from(own_parameters<P...>());
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return results(function(argument<P>(arguments, I)...));
  }
  (std::index_sequence_for<P...>());
}

/// Sets the attributes of an op struct from arguments of the same name.
class AttrReader final : public AttrVisitor {
 public:
  explicit AttrReader(const Arguments& arguments) : arguments_(arguments) {}
  void field(std::string_view name, bool& value) override { value = arguments_[name].as<bool>(); }
  void field(std::string_view name, int64_t& value) override { value = arguments_[name].as<int64_t>(); }
  void field(std::string_view name, Dim& value) override { value = arguments_[name].as<int64_t>(); }
  void field(std::string_view name, Scalar& value) override { value = arguments_[name].as<Scalar>(); }
  void field(std::string_view name, Shape& value) override { value = arguments_[name].as<IntArray>(); }
  void field(std::string_view name, IntList& value) override { value = arguments_[name].as<IntArray>(); }
  void field(std::string_view name, ScalarType& value) override { value = arguments_[name].as<ScalarType>(); }
  void field(std::string_view, Device&) override {}  // cases name no device

 private:
  const Arguments& arguments_;
};

template <class Op>
Tensors apply(const ops::Function<Op>& function, const Arguments& arguments) {
  if constexpr (Op::arity == 2) {
    return {function(arguments[0].as<Operand>(), arguments[1].as<Operand>())};
  } else if constexpr (std::is_same_v<typename Op::Attrs, ops::NoAttrs>) {
    return {function(arguments[0].as<Operand>())};
  } else {
    typename Op::Attrs attrs{};
    AttrReader reader(arguments);
    attrs.visit(reader);
    return {function(arguments[0].as<Operand>(), attrs)};
  }
}

}  // namespace detail

/// Calls the public function F with the arguments.
template <auto F>
Tensors call(const Arguments& arguments) {
  if constexpr (requires { +F; })
    return detail::apply(+F, arguments);
  else
    return detail::apply(F, arguments);
}

}  // namespace retrograd::conformance
