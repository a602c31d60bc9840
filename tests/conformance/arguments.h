// The arguments of one op call, resolved with the op's signature: which tensor, number or attribute belongs to which
// parameter, in the order of the signature. Argument::as<T>() converts to the parameter type of the public function
// that gets it.
#pragma once

#include <span>
#include <type_traits>

#include "engine/op.h"
#include "ops/loss_options.h"
#include "tests/conformance/signature.h"

namespace retrograd::conformance {

struct Argument {
  const Parameter* parameter = nullptr;
  Tensor tensor;    // marks tensor, optional_tensor, tensor_or_number: undefined when not given or a number
  Tensors tensors;  // mark tensors
  Json value;       // otherwise: the attribute, or its default
  bool given = false;  // by the call, not by default

  /// Converts to T: Operand, Tensor, Tensors, a number, a string, a list of integers (one integer is a list
  /// of one, null an empty list), ScalarType (null: Undefined), Json, or an optional of them. Throws
  /// BadManifest when it is something else.
  template <class T>
  T as() const;
};

class Arguments {
 public:
  /// `in`: the tensors of the call, undefined for null. Throws BadManifest when they do not fit the
  /// signature.
  Arguments(std::string_view op, const Signature& signature, const Tensors& in, const Json& attrs);

  std::string_view op() const { return op_; }
  const Argument& operator[](size_t i) const { return arguments_.at(i); }
  const Argument& operator[](std::string_view name) const;
  bool has(std::string_view name) const;
  size_t size() const { return arguments_.size(); }

  /// Throws Unsupported when the call gives one of the parameters from number `first` on: the public function
  /// lacks them.
  void refuse_from(size_t first) const;
  /// The same call on `self` as its first tensor.
  Arguments on(const Tensor& self) const;

 private:
  std::string op_;
  std::vector<Argument> arguments_;
};

namespace detail {
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
T convert(const Argument& argument) = delete;
template <>
Operand convert(const Argument& argument);
template <>
Tensor convert(const Argument& argument);
template <>
Tensors convert(const Argument& argument);
template <>
std::span<const Tensor> convert(const Argument& argument);
template <>
Scalar convert(const Argument& argument);
template <>
double convert(const Argument& argument);
template <>
int64_t convert(const Argument& argument);
template <>
int convert(const Argument& argument);
template <>
Dim convert(const Argument& argument);
template <>
bool convert(const Argument& argument);
template <>
std::string convert(const Argument& argument);
template <>
std::string_view convert(const Argument& argument);
template <>
LossReduction convert(const Argument& argument);
template <>
IntArray convert(const Argument& argument);
template <>
IntList convert(const Argument& argument);
template <>
Shape convert(const Argument& argument);
template <>
std::vector<double> convert(const Argument& argument);
template <>
ScalarType convert(const Argument& argument);
template <>
Json convert(const Argument& argument);
}  // namespace detail

template <class T>
T Argument::as() const {
  if constexpr (detail::IsOptional<T>::value) {
    const bool absent = !tensor.defined() && tensors.empty() && value.is_null();
    return absent ? T() : T(as<typename T::value_type>());
  } else {
    return detail::convert<T>(*this);
  }
}

}  // namespace retrograd::conformance
