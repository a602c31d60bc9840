// AT_DISPATCH_FLOATING_TYPES and others: calls a function with scalar_t as the type that stores a dtype.
//
//   AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] { scale(x.data_ptr<scalar_t>(), x.numel()); });
//
// A dtype that is not among those that the macro names is an Error(dtype_mismatch) with this name. Dtypes that do not
// exist here (8 and 16 bits, complex) are left out of ALL_TYPES and INTEGRAL_TYPES.
#pragma once

#include "engine/float_formats.h"
#include "torch/types.h"

#pragma GCC visibility push(default)
namespace torch::detail {

template <ScalarType dtype, class T, class... More>
constexpr auto stored_as() {
  if constexpr (retrograd::dtype_of<T>() == dtype)
    return std::type_identity<T>();
  else
    return stored_as<dtype, More...>();
}
/// The type that stores a dtype that is known when the program is compiled.
template <ScalarType dtype>
using StoredAs = decltype(stored_as<dtype, uint8_t, int32_t, int64_t, float, double, bool, retrograd::Half,
                                    retrograd::BFloat16>());

[[noreturn]] void no_kernel(const char* name, ScalarType dtype);

}  // namespace torch::detail
#pragma GCC visibility pop

#define AT_DISPATCH_CASE(DTYPE, ...)                                          \
  case DTYPE: {                                                               \
    using scalar_t [[maybe_unused]] = ::torch::detail::StoredAs<DTYPE>::type; \
    return __VA_ARGS__();                                                     \
  }
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                  \
  [&] {                                                      \
    switch (const ::torch::ScalarType dispatched = (TYPE)) { \
      __VA_ARGS__                                            \
      default: ::torch::detail::no_kernel(NAME, dispatched); \
    }                                                        \
  }()

#define AT_DISPATCH_CASE_FLOATING_TYPES(...)      \
  AT_DISPATCH_CASE(::torch::kDouble, __VA_ARGS__) \
  AT_DISPATCH_CASE(::torch::kFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)    \
  AT_DISPATCH_CASE(::torch::kByte, __VA_ARGS__) \
  AT_DISPATCH_CASE(::torch::kInt, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::torch::kLong, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...)        \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
// With one or two more dtypes.
#define AT_DISPATCH_FLOATING_TYPES_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                           \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND(::torch::kHalf, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...)                                     \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) \
                         AT_DISPATCH_CASE(B, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__))
