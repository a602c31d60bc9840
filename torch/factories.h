// Factories whose arguments are spelled differently in libtorch: tensor() of nested lists and of vectors, eye() with
// options, from_blob() with strides or a deleter; and those that only libtorch has: empty_strided(), range(), windows.
// All others are the library's (torch/functions.h).
//
//   torch::tensor({{1, 2}, {3, 4}});            torch::tensor(std::vector<float>{1, 2}, torch::kDouble);
//   torch::from_blob(data, {2, 3}, torch::kFloat);
#pragma once

#include <concepts>
#include <functional>

#include "ops/creation.h"
#include "torch/types.h"

#pragma GCC visibility push(default)
namespace torch {

namespace detail {

template <class T>
concept Number =
    std::is_arithmetic_v<T> || std::same_as<T, retrograd::Half> || std::same_as<T, retrograd::BFloat16>;

/// What tensor() is given: a number, a list of such, or a vector; its numbers in row-major order, and their shape.
/// Integers are kept exactly. Error(shape_mismatch) for lists of different lengths, Error(dtype_mismatch) for numbers
/// of different kinds, Error(bad_dim) for more than 8 levels.
class TensorData {
 public:
  TensorData() : shape_{0} {}
  template <Number T>
  TensorData(T number) : dtype_(dtype_of_numbers<T>()) {
    add(number);
  }
  TensorData(std::initializer_list<TensorData> list);
  template <Number T>
  TensorData(const std::vector<T>& list)
      : shape_{static_cast<int64_t>(list.size())}, dtype_(dtype_of_numbers<T>()) {
    for (const T item : list) add(item);
  }
  template <Number T>
  TensorData(ArrayRef<T> list) : TensorData(list.vec()) {}

  Tensor tensor(const TensorOptions& options, retrograd::SourceLocation where) const;

 private:
  // float32 for those that become the default dtype.
  template <class T>
  static constexpr ScalarType dtype_of_numbers() {
    constexpr ScalarType dtype = retrograd::dtype_of<T>();
    if (dtype == kDouble) return kFloat;
    return dtype == kInt || dtype == ScalarType::Undefined ? kLong : dtype;
  }
  template <class T>
  void add(T number) {
    if constexpr (std::is_integral_v<T>)
      integers_.push_back(retrograd::Scalar(number).to_int());
    else
      numbers_.push_back(static_cast<double>(number));
  }

  std::vector<int64_t> shape_;
  ScalarType dtype_ = kFloat;
  std::vector<double> numbers_;    // of a floating dtype
  std::vector<int64_t> integers_;  // of all others
};

}  // namespace detail

/// A copy of the numbers. Without a dtype bool, int64 or the default dtype, as they are.
inline Tensor tensor(const detail::TensorData& data, const TensorOptions& options = {},
                     retrograd::SourceLocation where = retrograd::SourceLocation::current()) {
  return data.tensor(options, where);
}

/// (n, n), with options in place of a second size.
inline Tensor eye(int64_t n, const TensorOptions& options,
                  retrograd::SourceLocation where = retrograd::SourceLocation::current()) {
  return retrograd::eye(n, {}, options, where);
}
using retrograd::eye;

/// Memory with these strides, whose values are not set. Error(bad_argument) for a negative stride.
Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {},
                     retrograd::SourceLocation where = retrograd::SourceLocation::current());
/// start, start + step, ... up to and including `end`; float32 without a dtype. Error(bad_argument) for a step of zero or
/// one that leads away from `end`.
Tensor range(Scalar start, Scalar end, Scalar step, const TensorOptions& options = {},
             retrograd::SourceLocation where = retrograd::SourceLocation::current());
inline Tensor range(Scalar start, Scalar end, const TensorOptions& options = {},
                    retrograd::SourceLocation where = retrograd::SourceLocation::current()) {
  return range(start, end, 1, options, where);
}

// Windows of `length` samples, of a cosine or a triangle; periodic: the first of length + 1 samples that are symmetric.
// Error(bad_argument) for a negative length.
#define RG_WINDOW(NAME)                                                                        \
  Tensor NAME(int64_t length, bool periodic, const TensorOptions& options = {},                \
              retrograd::SourceLocation where = retrograd::SourceLocation::current());         \
  inline Tensor NAME(int64_t length, const TensorOptions& options = {},                        \
                     retrograd::SourceLocation where = retrograd::SourceLocation::current()) { \
    return NAME(length, true, options, where);                                                 \
  }
RG_WINDOW(hann_window)
RG_WINDOW(hamming_window)
RG_WINDOW(blackman_window)
RG_WINDOW(bartlett_window)
#undef RG_WINDOW

using Deleter = std::function<void(void*)>;

/// Memory of the caller, which is neither copied nor freed. It is shared: writes are seen on both sides.
inline Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {},
                        retrograd::SourceLocation where = retrograd::SourceLocation::current()) {
  return retrograd::from_blob(data, sizes, options, nullptr, nullptr, where);
}
/// With strides in elements. Error(bad_argument) for a negative one.
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {},
                 retrograd::SourceLocation where = retrograd::SourceLocation::current());
/// `deleter(data)` is called when the last tensor of this memory is gone.
Tensor from_blob(void* data, IntArrayRef sizes, const Deleter& deleter, const TensorOptions& options = {},
                 retrograd::SourceLocation where = retrograd::SourceLocation::current());
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const Deleter& deleter,
                 const TensorOptions& options = {},
                 retrograd::SourceLocation where = retrograd::SourceLocation::current());

}  // namespace torch
#pragma GCC visibility pop
