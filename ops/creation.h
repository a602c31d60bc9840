// Factories. They have no operands: the current emitter makes their results, so inside a traced function they are nodes
// of the graph. Sequences and lists of indices are host data, like the result of tensor(); for another device they are
// copied there. Error(bad_argument) when there is no such device.
#pragma once

#include <concepts>
#include <optional>

#include "engine/tensor.h"
#include "engine/tensor_options.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

namespace detail {
/// The dtype of a tensor of such numbers: bool, int64, or the default dtype.
template <class T>
requires std::is_arithmetic_v<T> ScalarType dtype_of_numbers() {
  return std::is_same_v<T, bool> ? kBool : std::is_integral_v<T> ? kInt64 : get_default_dtype();
}
}  // namespace detail

/// `value` everywhere. Without a dtype bool, int64 or the default dtype, as the number is.
Tensor full(const Shape& size, Scalar value, TensorOptions options,
            SourceLocation where = SourceLocation::current());
Tensor full(const Shape& size, Scalar value, SourceLocation where = SourceLocation::current());
Tensor zeros(const Shape& size, TensorOptions options = {}, SourceLocation where = SourceLocation::current());
Tensor ones(const Shape& size, TensorOptions options = {}, SourceLocation where = SourceLocation::current());
/// Uninitialised memory; false of dtype bool, since not every byte is a bool.
Tensor empty(const Shape& size, TensorOptions options = {}, SourceLocation where = SourceLocation::current());
/// A copy of `values` (row-major) as a tensor of `size`, converted to options.dtype.
Tensor tensor(const std::vector<double>& values, const Shape& size, TensorOptions options = {},
              SourceLocation where = SourceLocation::current());
/// The same for integers, which are not rounded: int64 without a dtype.
template <std::same_as<int64_t> T>
Tensor tensor(const std::vector<T>& values, const Shape& size, TensorOptions options = {},
              SourceLocation where = SourceLocation::current());
/// The numbers as a vector. Without a dtype bool, int64 or the default dtype, as they are: tensor({1, 2}) is int64.
template <class T>
Tensor tensor(std::initializer_list<T> values, TensorOptions options = {},
              SourceLocation where = SourceLocation::current()) {
  using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  return tensor(std::vector<Wide>(values.begin(), values.end()), {static_cast<int64_t>(values.size())},
                options.or_else(detail::dtype_of_numbers<T>()), where);
}
/// Integers among floating numbers: tensor({1, 2.5}).
inline Tensor tensor(std::initializer_list<double> values, TensorOptions options = {},
                     SourceLocation where = SourceLocation::current()) {
  return tensor<double>(values, options, where);
}
/// The number as a 0-dim tensor, with the same dtypes.
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(T value, TensorOptions options = {},
                                               SourceLocation where = SourceLocation::current()) {
  return full({}, value, options.or_else(detail::dtype_of_numbers<T>()), where);
}
/// The number as a 0-dim tensor of the default dtype.
Tensor scalar_tensor(Scalar value, TensorOptions options = {},
                     SourceLocation where = SourceLocation::current());
/// start, start + step, ... up to, not including, `end`. Without a dtype int64, or float32 if a number is
/// floating. Error(bad_argument) for a step of zero or one that leads away from `end`.
Tensor arange(Scalar start, Scalar end, Scalar step = 1, std::optional<TensorOptions> options = {},
              SourceLocation where = SourceLocation::current());
/// In steps of 1.
Tensor arange(Scalar start, Scalar end, TensorOptions options,
              SourceLocation where = SourceLocation::current());
/// From 0 in steps of 1.
Tensor arange(Scalar end, std::optional<TensorOptions> options = {},
              SourceLocation where = SourceLocation::current());
/// `steps` numbers at equal distances, the first `start`, the last `end`; truncated in integer dtypes.
/// Error(bad_argument) for negative steps, Error(dtype_mismatch) for bool.
Tensor linspace(Scalar start, Scalar end, int64_t steps, TensorOptions options = {},
                SourceLocation where = SourceLocation::current());
/// `base` to the power of each number of linspace(start, end, steps).
Tensor logspace(Scalar start, Scalar end, int64_t steps, double base = 10, TensorOptions options = {},
                SourceLocation where = SourceLocation::current());
/// (2, n): rows and columns of the elements of a (row, col) matrix on and below (tril) or above (triu) a
/// diagonal, in row-major order. int64, or int32 if options say so. Errors: bad_argument, dtype_mismatch.
Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0, TensorOptions options = {},
                    SourceLocation where = SourceLocation::current());
Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0, TensorOptions options = {},
                    SourceLocation where = SourceLocation::current());
/// (n, m): ones on the diagonal, else zeros; m is n unless given.
Tensor eye(Dim n, std::optional<Dim> m = {}, TensorOptions options = {},
           SourceLocation where = SourceLocation::current());
/// Memory of the caller on options.device, in use until `release(context)` is called.
Tensor from_blob(void* data, const Shape& size, TensorOptions options = {}, void (*release)(void*) = nullptr,
                 void* context = nullptr, SourceLocation where = SourceLocation::current());

/// Of the size, dtype and device of `input`, as far as options do not say otherwise; no history.
Tensor full_like(Operand input, Scalar value, TensorOptions options = {});
Tensor zeros_like(Operand input, TensorOptions options = {});
Tensor ones_like(Operand input, TensorOptions options = {});
Tensor empty_like(Operand input, TensorOptions options = {});

/// Zeros and ones of a type.
Tensor zeros_of(const TensorType& type, SourceLocation where);
/// The same as one repeated zero: for ops that copy it before they write.
Tensor repeated_zero(const TensorType& type, SourceLocation where);
Tensor ones_of(const TensorType& type, SourceLocation where);

}  // namespace retrograd
#pragma GCC visibility pop
