// IValue: a value of one of a few kinds, as an archive keeps it beside tensors (torch/serialize.h).
//
//   archive.write("step", torch::IValue(step));      value.toInt()
//
// Kinds: none, bool, integer, floating number, text, tensor, list of integers. toX() of another kind is an
// Error(bad_argument); toDouble() also takes an integer.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "torch/types.h"

#pragma GCC visibility push(default)
namespace torch {

class IValue {
 public:
  using Kinds =
      std::variant<std::monostate, bool, int64_t, double, std::string, Tensor, std::vector<int64_t>>;

  IValue() = default;
  IValue(nullopt_t) {}
  template <class T>
  requires std::is_arithmetic_v<T> IValue(T number) {
    if constexpr (std::is_same_v<T, bool>)
      value_ = number;
    else if constexpr (std::is_integral_v<T>)
      value_ = static_cast<int64_t>(number);
    else
      value_ = static_cast<double>(number);
  }
  IValue(const Scalar& number);
  IValue(std::string text) : value_(std::move(text)) {}
  IValue(const char* text) : value_(std::string(text)) {}
  IValue(Tensor tensor) : value_(std::move(tensor)) {}
  IValue(std::vector<int64_t> list) : value_(std::move(list)) {}
  IValue(IntArrayRef list) : value_(list.vec()) {}

  bool isNone() const { return is<std::monostate>(); }
  bool isBool() const { return is<bool>(); }
  bool isInt() const { return is<int64_t>(); }
  bool isDouble() const { return is<double>(); }
  bool isString() const { return is<std::string>(); }
  bool isTensor() const { return is<Tensor>(); }
  bool isIntList() const { return is<std::vector<int64_t>>(); }

  bool toBool() const { return get<bool>("a bool"); }
  int64_t toInt() const { return get<int64_t>("an integer"); }
  double toDouble() const {
    return isInt() ? static_cast<double>(toInt()) : get<double>("a floating number");
  }
  const std::string& toStringRef() const { return get<std::string>("a text"); }
  const Tensor& toTensor() const { return get<Tensor>("a tensor"); }
  const std::vector<int64_t>& toIntVector() const { return get<std::vector<int64_t>>("a list of integers"); }

  const Kinds& kinds() const { return value_; }

 private:
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(value_);
  }
  template <class T>
  const T& get(const char* wanted) const {
    if (const T* value = std::get_if<T>(&value_)) return *value;
    refuse(wanted);
  }
  [[noreturn]] static void refuse(const char* wanted);

  Kinds value_;
};

}  // namespace torch
#pragma GCC visibility pop
