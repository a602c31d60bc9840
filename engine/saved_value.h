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
#include <variant>

#include "engine/sizes.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class Tensor;

class SavedValue : public Scalar {
 public:
  SavedValue() = default;
  template <std::convertible_to<Scalar> T>
  SavedValue(const T& number) : Scalar(number) {}
  SavedValue(std::string text) : other_(std::move(text)) {}
  SavedValue(const char* text) : other_(std::string(text)) {}
  SavedValue(IntArray list) : other_(std::move(list)) {}
  SavedValue(const IntList& list) : other_(IntArray(list.begin(), list.end())) {}
  SavedValue(const Sizes& sizes) : other_(IntArray(sizes)) {}
  SavedValue(const Tensor&) = delete;  // ctx->save_for_backward({x})

  bool is_number() const { return std::holds_alternative<std::monostate>(other_); }
  bool isString() const { return std::holds_alternative<std::string>(other_); }
  bool isIntList() const { return std::holds_alternative<IntArray>(other_); }
  /// Error(bad_argument) for another kind of value.
  const std::string& toStringRef() const { return get<std::string>("a text"); }
  const IntArray& toIntVector() const { return get<IntArray>("a list of integers"); }

 private:
  template <class T>
  const T& get(std::string_view wanted) const {
    if (const T* value = std::get_if<T>(&other_)) return *value;
    fail(Category::bad_argument, "saved_data", "a value is not " + std::string(wanted));
  }

  std::variant<std::monostate, std::string, IntArray> other_;  // monostate: a number
};

}  // namespace retrograd
#pragma GCC visibility pop
