// Element types: their enum, sizes, names, storage types and promotion.
//
// ScalarType numbers the types; the constants kFloat32, kLong, ... are libtorch's. Two spellings exist and
// both parse: the long one is PyTorch's ("float32"), the short one ("f32") is used in the text of the IR.
//
// Promotion follows PyTorch. promote_types() joins two dtypes; TypePromotion joins the operands of an op, in
// three classes: tensors with dimensions, 0-dim tensors, and C++ scalars. A lower class changes the result
// only if it is of a higher category (bool < integral < floating), so float16 tensor + 2.5 stays float16 and
// int64 tensor + 2.5 becomes float32, the default dtype. Undefined as a result means "no such promotion": float8
// joins only itself.
//
// dispatch() turns a ScalarType into a C++ type for a generic lambda.
//
// A new dtype is one line each in the enum, element_size(), dispatch(), dtype_of() and kNames (dtype.cc).
// is_floating() and is_integral() rely on the order of the enum.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "engine/float_formats.h"
#include "engine/location.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

enum class ScalarType : uint8_t {
  Float64,
  Float32,
  Float16,
  BFloat16,
  Float8_e4m3fn,
  Float8_e5m2,
  Int64,
  Int32,
  UInt8,
  Bool,
  Undefined,
};

inline constexpr ScalarType kFloat64 = ScalarType::Float64;
inline constexpr ScalarType kFloat32 = ScalarType::Float32;
inline constexpr ScalarType kFloat16 = ScalarType::Float16;
inline constexpr ScalarType kBFloat16 = ScalarType::BFloat16;
inline constexpr ScalarType kFloat8_e4m3fn = ScalarType::Float8_e4m3fn;
inline constexpr ScalarType kFloat8_e5m2 = ScalarType::Float8_e5m2;
inline constexpr ScalarType kInt64 = ScalarType::Int64;
inline constexpr ScalarType kInt32 = ScalarType::Int32;
inline constexpr ScalarType kUInt8 = ScalarType::UInt8;
inline constexpr ScalarType kBool = ScalarType::Bool;

inline constexpr ScalarType kDouble = kFloat64;
inline constexpr ScalarType kFloat = kFloat32;
inline constexpr ScalarType kHalf = kFloat16;
inline constexpr ScalarType kLong = kInt64;
inline constexpr ScalarType kInt = kInt32;
inline constexpr ScalarType kByte = kUInt8;

/// Number of dtypes, Undefined not counted; valid dtypes are 0 .. kScalarTypeCount - 1.
inline constexpr int kScalarTypeCount = static_cast<int>(ScalarType::Undefined);

namespace detail {
inline constexpr uint8_t kElementSizes[kScalarTypeCount + 1] = {8, 4, 2, 2, 1, 1, 8, 4, 1, 1, 0};
}

/// Bytes of one element; 0 for Undefined.
constexpr size_t element_size(ScalarType dtype) { return detail::kElementSizes[static_cast<int>(dtype)]; }

/// True for the six floating types, float8 among them.
constexpr bool is_floating(ScalarType dtype) { return dtype <= kFloat8_e5m2; }

constexpr bool is_float8(ScalarType dtype) { return dtype == kFloat8_e4m3fn || dtype == kFloat8_e5m2; }

/// True for int64, int32 and uint8, and for bool if `include_bool`.
constexpr bool is_integral(ScalarType dtype, bool include_bool) {
  return (dtype >= kInt64 && dtype <= kUInt8) || (include_bool && dtype == kBool);
}

/// "float32", "float8_e4m3fn", ...; "undefined" for Undefined.
std::string_view name(ScalarType dtype);

/// "f32", "f8e4m3", ...; "undefined" for Undefined.
std::string_view short_name(ScalarType dtype);

/// The dtype with this name or short name; nothing for any other text, "undefined" included.
std::optional<ScalarType> parse_dtype(std::string_view text);

/// The first criterion of promotion; ordered.
enum class TypeCategory : uint8_t { Bool, Integral, Floating };

/// The category of a defined dtype.
constexpr TypeCategory type_category(ScalarType dtype) {
  if (is_floating(dtype)) return TypeCategory::Floating;
  return dtype == kBool ? TypeCategory::Bool : TypeCategory::Integral;
}

namespace detail {
extern constinit std::atomic<ScalarType> default_dtype;
}

/// The dtype of floating tensors for which none is given, for all threads: those of factories and modules, and what
/// integers become with a C++ floating number or in an op that gives fractions. float32 at first.
inline ScalarType get_default_dtype() { return detail::default_dtype.load(std::memory_order_relaxed); }
/// What exists already stays as it is; a recorded function is recorded again. Error(bad_argument) unless `dtype` is
/// float64, float32, float16 or bfloat16.
void set_default_dtype(ScalarType dtype, SourceLocation where = SourceLocation::current());

/// The smallest dtype both convert to, by PyTorch's table. Undefined if either is, or if they differ and
/// one is a float8 type.
ScalarType promote_types(ScalarType a, ScalarType b);

/// Finds the dtype of an op's result from its operands, as torch.result_type. The order of operands is free.
class TypePromotion {
 public:
  /// `zero_dim`: the tensor has no dimensions, so it only counts by category. Undefined takes no part.
  void add_tensor(ScalarType dtype, bool zero_dim) { join(zero_dim ? zero_dim_ : dimensioned_, dtype); }

  /// A C++ number: floating counts as the default dtype, integral as int64.
  void add_scalar(TypeCategory category);

  /// The result; Undefined if the operands do not promote or there were none.
  ScalarType result() const;

 private:
  void join(ScalarType& priority_class, ScalarType dtype);

  ScalarType dimensioned_ = ScalarType::Undefined;
  ScalarType zero_dim_ = ScalarType::Undefined;
  ScalarType scalar_ = ScalarType::Undefined;
  bool impossible_ = false;  // some pair within one class had no promotion
};

/// Throws Error (bad_argument): an element type was needed and there is none.
[[noreturn]] void throw_undefined_dtype();

/// Calls f(std::type_identity<T>{}) with the storage type T of `dtype`; the result type may not depend on T.
/// Throws Error (bad_argument) for Undefined.
template <class F>
decltype(auto) dispatch(ScalarType dtype, F&& f) {
  switch (dtype) {
    case ScalarType::Float64: return std::forward<F>(f)(std::type_identity<double>{});
    case ScalarType::Float32: return std::forward<F>(f)(std::type_identity<float>{});
    case ScalarType::Float16: return std::forward<F>(f)(std::type_identity<Half>{});
    case ScalarType::BFloat16: return std::forward<F>(f)(std::type_identity<BFloat16>{});
    case ScalarType::Float8_e4m3fn: return std::forward<F>(f)(std::type_identity<Float8_e4m3fn>{});
    case ScalarType::Float8_e5m2: return std::forward<F>(f)(std::type_identity<Float8_e5m2>{});
    case ScalarType::Int64: return std::forward<F>(f)(std::type_identity<int64_t>{});
    case ScalarType::Int32: return std::forward<F>(f)(std::type_identity<int32_t>{});
    case ScalarType::UInt8: return std::forward<F>(f)(std::type_identity<uint8_t>{});
    case ScalarType::Bool: return std::forward<F>(f)(std::type_identity<bool>{});
    case ScalarType::Undefined: break;
  }
  throw_undefined_dtype();
}

/// The dtype stored as T; Undefined for a type that stores none.
template <class T>
constexpr ScalarType dtype_of() {
  if constexpr (std::is_same_v<T, double>) return kFloat64;
  if constexpr (std::is_same_v<T, float>) return kFloat32;
  if constexpr (std::is_same_v<T, Half>) return kFloat16;
  if constexpr (std::is_same_v<T, BFloat16>) return kBFloat16;
  if constexpr (std::is_same_v<T, Float8_e4m3fn>) return kFloat8_e4m3fn;
  if constexpr (std::is_same_v<T, Float8_e5m2>) return kFloat8_e5m2;
  if constexpr (std::is_same_v<T, int64_t>) return kInt64;
  if constexpr (std::is_same_v<T, int32_t>) return kInt32;
  if constexpr (std::is_same_v<T, uint8_t>) return kUInt8;
  if constexpr (std::is_same_v<T, bool>) return kBool;
  return ScalarType::Undefined;
}

}  // namespace retrograd
#pragma GCC visibility pop
