// SavedValue: what AutogradContext::saved_data keeps by name, as libtorch's IValue: a number, a text, or a list of
// integers.
//
//   ctx->saved_data["factor"] = 2.0;              grads[0] * ctx->saved_data["factor"]
//   ctx->saved_data["mode"] = "reflect";          ctx->saved_data["mode"].toStringRef()
//   ctx->saved_data["padding"] = IntArray{1, 2};  ctx->saved_data["padding"].toIntVector()
//
// A number is a Scalar, symbols included. Tensors are given to save_for_backward().
#pragma once

#include <string>
#include <type_traits>
#include <variant>

#include "engine/sizes.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class Tensor;

class SavedValue {
 public:
  SavedValue() = default;  // 0
  template <std::convertible_to<Scalar> T>
  requires(!std::is_pointer_v<std::decay_t<T>>)  // a text, which would be true
      SavedValue(const T& number)
      : value_(Scalar(number)) {}
  SavedValue(std::string text) : value_(std::move(text)) {}
  SavedValue(const char* text) : value_(std::string(text)) {}
  SavedValue(IntArray list) : value_(std::move(list)) {}
  SavedValue(const IntList& list) : value_(IntArray(list.begin(), list.end())) {}
  SavedValue(const Sizes& sizes) : value_(IntArray(sizes)) {}
  SavedValue(const Tensor&) = delete;  // ctx->save_for_backward({x})

  bool is_number() const { return std::holds_alternative<Scalar>(value_); }
  bool isString() const { return std::holds_alternative<std::string>(value_); }
  bool isIntList() const { return std::holds_alternative<IntArray>(value_); }
  // Error(bad_argument) for another kind of value.
  const Scalar& number() const { return get<Scalar>("a number"); }
  operator const Scalar&() const { return number(); }
  const std::string& toStringRef() const { return get<std::string>("a text"); }
  const IntArray& toIntVector() const { return get<IntArray>("a list of integers"); }
  // Those of the number.
  double to_double() const { return number().to_double(); }
  int64_t to_int() const { return number().to_int(); }
  template <class T>
  T to() const {
    return number().to<T>();
  }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int64_t toLong() const { return to<int64_t>(); }
  int toInt() const { return to<int>(); }
  bool toBool() const { return to<bool>(); }

 private:
  template <class T>
  const T& get(std::string_view wanted) const {
    if (const T* value = std::get_if<T>(&value_)) return *value;
    fail(Category::bad_argument, "saved_data", "a value is not " + std::string(wanted));
  }

  std::variant<Scalar, std::string, IntArray> value_;
};

}  // namespace retrograd
#pragma GCC visibility pop
