// Element types: names, sizes, float formats, promotion, dispatch.
//
// Not tested here: conversion of whole tensors, promotion inside ops, NaN payloads (they are not kept), and
// other rounding modes than the default. Rounding is checked around the middle of every two neighbours, not
// for all 2^32 floats.
#include <catch2/catch.hpp>

#include <cmath>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/dtype.h"
#include "engine/error.h"

using namespace retrograd;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// The finite values of T that are not negative, in order: their bit patterns ascend with them.
template <class T>
std::vector<double> finite_values() {
  std::vector<double> values;
  for (unsigned bits = 0; bits < (1u << (8 * sizeof(T) - 1)); ++bits) {
    const float value = T::from_bits(static_cast<decltype(T::bits)>(bits));
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

template <class T>
unsigned encoded(double value) {
  return T(static_cast<float>(value)).bits;
}

template <class T>
void check_round_trip() {
  for (unsigned bits = 0; bits < (1u << (8 * sizeof(T))); ++bits) {
    const T value = T::from_bits(static_cast<decltype(T::bits)>(bits));
    const float exact = value;
    const T back(exact);
    if (std::isnan(exact) ? !std::isnan(float(back)) : back.bits != bits) {
      FAIL("pattern " << bits << " is " << exact << " and comes back as " << unsigned{back.bits});
    }
  }
  SUCCEED();
}

// Between neighbours: the midpoint is rounded to the even pattern, a float on either side of it to the nearer one.
template <class T>
void check_rounding() {
  const std::vector<double> values = finite_values<T>();
  const unsigned sign = 1u << (8 * sizeof(T) - 1);
  for (unsigned low = 0; low + 1 < values.size(); ++low) {
    const auto middle = static_cast<float>((values[low] + values[low + 1]) / 2);
    REQUIRE(double{middle} == (values[low] + values[low + 1]) / 2);
    const unsigned even = low + (low & 1);
    const bool ok = encoded<T>(middle) == even && encoded<T>(-middle) == (even | sign) &&
                    encoded<T>(std::nextafterf(middle, 0)) == low &&
                    encoded<T>(std::nextafterf(middle, kInfinity)) == low + 1;
    if (!ok) FAIL("around " << middle << ", between patterns " << low << " and " << low + 1);
  }
  SUCCEED();
}

template <class T>
void check_overflow(double last_kept, unsigned largest, unsigned overflow) {
  const auto kept = static_cast<float>(last_kept);
  CHECK(encoded<T>(kept) == largest);
  CHECK(encoded<T>(std::nextafterf(kept, kInfinity)) == overflow);
  CHECK(encoded<T>(std::numeric_limits<float>::max()) == overflow);
  CHECK(encoded<T>(kInfinity) == overflow);
  CHECK(encoded<T>(-kInfinity) == (overflow | 1u << (8 * sizeof(T) - 1)));
  CHECK(std::isnan(float(T(kNaN))));
  CHECK(std::isnan(float(T(-kNaN))));
  const auto signalling = std::bit_cast<float>(0x7f800001u);
  CHECK(std::isnan(float(T(signalling))));
}

}  // namespace

TEST_CASE("dtype: every bit pattern survives the way through float", "[dtype]") {
  check_round_trip<Half>();
  check_round_trip<BFloat16>();
  check_round_trip<Float8_e4m3fn>();
  check_round_trip<Float8_e5m2>();
}

TEST_CASE("dtype: known values of the float formats", "[dtype]") {
  CHECK(float(Half::from_bits(0x3c00)) == 1.0f);
  CHECK(float(Half::from_bits(0xc000)) == -2.0f);
  CHECK(float(Half::from_bits(0x7bff)) == 65504.0f);
  CHECK(float(Half::from_bits(0x0001)) == std::ldexp(1.0f, -24));
  CHECK(float(Half::from_bits(0x0400)) == std::ldexp(1.0f, -14));
  CHECK(float(Half::from_bits(0x7c00)) == kInfinity);
  CHECK(float(BFloat16::from_bits(0x3f80)) == 1.0f);
  CHECK(float(BFloat16::from_bits(0x0001)) == std::ldexp(1.0f, -133));
  CHECK(float(BFloat16::from_bits(0xff80)) == -kInfinity);
  CHECK(float(Float8_e4m3fn::from_bits(0x38)) == 1.0f);
  CHECK(float(Float8_e4m3fn::from_bits(0x7e)) == 448.0f);
  CHECK(float(Float8_e4m3fn::from_bits(0x01)) == std::ldexp(1.0f, -9));
  CHECK(std::isnan(float(Float8_e4m3fn::from_bits(0x7f))));
  CHECK(std::isnan(float(Float8_e4m3fn::from_bits(0xff))));
  CHECK(float(Float8_e5m2::from_bits(0x3c)) == 1.0f);
  CHECK(float(Float8_e5m2::from_bits(0x7b)) == 57344.0f);
  CHECK(float(Float8_e5m2::from_bits(0x01)) == std::ldexp(1.0f, -16));
  CHECK(float(Float8_e5m2::from_bits(0xfc)) == -kInfinity);
  CHECK(std::isnan(float(Float8_e5m2::from_bits(0x7d))));
  CHECK(std::signbit(float(Half(-0.0f))));
  CHECK(std::signbit(float(BFloat16(-0.0f))));
  CHECK(std::signbit(float(Float8_e4m3fn(-0.0f))));
  CHECK(std::signbit(float(Float8_e5m2(-0.0f))));
}

TEST_CASE("dtype: conversion rounds to nearest, ties to even, subnormals included", "[dtype]") {
  check_rounding<Half>();
  check_rounding<Float8_e4m3fn>();
  check_rounding<Float8_e5m2>();
  check_rounding<BFloat16>();
}

TEST_CASE("dtype: overflow gives infinity, or NaN in e4m3fn", "[dtype]") {
  check_overflow<Half>(std::nextafterf(65520.0f, 0), 0x7bff, 0x7c00);
  check_overflow<Float8_e4m3fn>(464.0, 0x7e, 0x7f);
  check_overflow<Float8_e5m2>(std::nextafterf(61440.0f, 0), 0x7b, 0x7c);
  const auto last_bfloat16 = std::bit_cast<float>(0x7f7f7fffu);
  check_overflow<BFloat16>(last_bfloat16, 0x7f7f, 0x7f80);
}

TEST_CASE("dtype: double reaches the small formats through float", "[dtype]") {
  // Just above the tie between 1 and the next Half: float rounds it onto the tie, which is then rounded to even.
  const double above_tie = 1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  CHECK(Half(static_cast<float>(above_tie)).bits == 0x3c00);
  CHECK(static_cast<double>(Half(0.5f)) == 0.5);
  CHECK(static_cast<int64_t>(BFloat16(-3.0f)) == -3);
  CHECK(static_cast<BFloat16>(Half(1.5f)).bits == 0x3fc0);
  CHECK_FALSE(static_cast<bool>(Half(-0.0f)));
}

TEST_CASE("dtype: conversions are constant expressions", "[dtype]") {
  static_assert(Half(1.0f).bits == 0x3c00 && float(Half::from_bits(0x0001)) > 0);
  static_assert(Half(1e-7f).bits == 2 && BFloat16(1.0f).bits == 0x3f80);
  static_assert(Float8_e4m3fn(448.0f).bits == 0x7e && Float8_e5m2(1e9f).bits == 0x7c);
  static_assert(std::is_trivially_copyable_v<Half> && std::is_trivially_default_constructible_v<Half>);
  static_assert(!std::is_convertible_v<float, Half> && std::is_convertible_v<Half, float>);
  SUCCEED();
}

TEST_CASE("dtype: names, sizes and predicates", "[dtype]") {
  struct Row {
    ScalarType dtype;
    const char* name;
    const char* short_name;
    size_t size;
    TypeCategory category;
  };
  const Row rows[] = {
      {kDouble, "float64", "f64", 8, TypeCategory::Floating},
      {kFloat, "float32", "f32", 4, TypeCategory::Floating},
      {kHalf, "float16", "f16", 2, TypeCategory::Floating},
      {kBFloat16, "bfloat16", "bf16", 2, TypeCategory::Floating},
      {kFloat8_e4m3fn, "float8_e4m3fn", "f8e4m3", 1, TypeCategory::Floating},
      {kFloat8_e5m2, "float8_e5m2", "f8e5m2", 1, TypeCategory::Floating},
      {kLong, "int64", "i64", 8, TypeCategory::Integral},
      {kInt, "int32", "i32", 4, TypeCategory::Integral},
      {kByte, "uint8", "u8", 1, TypeCategory::Integral},
      {kBool, "bool", "bool", 1, TypeCategory::Bool},
  };
  REQUIRE(std::size(rows) == size_t{kScalarTypeCount});
  for (const Row& row : rows) {
    INFO(row.name);
    CHECK(name(row.dtype) == row.name);
    CHECK(short_name(row.dtype) == row.short_name);
    CHECK(element_size(row.dtype) == row.size);
    CHECK(type_category(row.dtype) == row.category);
    CHECK(is_floating(row.dtype) == (row.category == TypeCategory::Floating));
    CHECK(is_integral(row.dtype, false) == (row.category == TypeCategory::Integral));
    CHECK(is_integral(row.dtype, true) == (row.category != TypeCategory::Floating));
    CHECK(parse_dtype(row.name) == row.dtype);
    CHECK(parse_dtype(row.short_name) == row.dtype);
  }
  for (const char* text : {"", "undefined", "float", "F32", "f32 ", "float8"}) CHECK_FALSE(parse_dtype(text));
  CHECK(element_size(ScalarType::Undefined) == 0);
  CHECK_FALSE(is_floating(ScalarType::Undefined));
  CHECK_FALSE(is_integral(ScalarType::Undefined, true));
}

TEST_CASE("dtype: promotion of two types, the full table of PyTorch", "[dtype]") {
  // Rows and columns in the order of the enum; "-" where PyTorch raises.
  const char* const table[kScalarTypeCount] = {
      "f64 f64 f64 f64 - - f64 f64 f64 f64",       // f64
      "f64 f32 f32 f32 - - f32 f32 f32 f32",       // f32
      "f64 f32 f16 f32 - - f16 f16 f16 f16",       // f16
      "f64 f32 f32 bf16 - - bf16 bf16 bf16 bf16",  // bf16
      "- - - - f8e4m3 - - - - -",                  // f8e4m3
      "- - - - - f8e5m2 - - - -",                  // f8e5m2
      "f64 f32 f16 bf16 - - i64 i64 i64 i64",      // i64
      "f64 f32 f16 bf16 - - i64 i32 i32 i32",      // i32
      "f64 f32 f16 bf16 - - i64 i32 u8 u8",        // u8
      "f64 f32 f16 bf16 - - i64 i32 u8 bool",      // bool
  };
  for (int i = 0; i < kScalarTypeCount; ++i) {
    std::istringstream row(table[i]);
    for (int j = 0; j < kScalarTypeCount; ++j) {
      std::string expected;
      REQUIRE(row >> expected);
      const auto a = static_cast<ScalarType>(i), b = static_cast<ScalarType>(j);
      INFO(name(a) << " with " << name(b));
      CHECK(promote_types(a, b) == parse_dtype(expected).value_or(ScalarType::Undefined));
    }
    CHECK(promote_types(static_cast<ScalarType>(i), ScalarType::Undefined) == ScalarType::Undefined);
    CHECK(promote_types(ScalarType::Undefined, static_cast<ScalarType>(i)) == ScalarType::Undefined);
  }
}

TEST_CASE("dtype: promotion of operands by priority class", "[dtype]") {
  struct Operand {
    char kind;  // 'd' tensor with dimensions, '0' 0-dim tensor, 's' scalar of the dtype's category
    ScalarType dtype;
  };
  struct Row {
    std::vector<Operand> operands;
    ScalarType expected;
  };
  const Row rows[] = {
      {{}, ScalarType::Undefined},
      {{{'s', kFloat64}}, kFloat32},
      {{{'s', kInt32}}, kInt64},
      {{{'s', kBool}, {'s', kBool}}, kBool},
      {{{'d', kFloat16}, {'s', kFloat64}}, kFloat16},
      {{{'d', kFloat16}, {'0', kFloat64}}, kFloat16},
      {{{'d', kFloat16}, {'d', kFloat64}}, kFloat64},
      {{{'d', kInt32}, {'s', kInt64}}, kInt32},
      {{{'d', kInt32}, {'0', kInt64}}, kInt32},
      {{{'d', kInt32}, {'s', kFloat64}}, kFloat32},
      {{{'d', kInt32}, {'0', kFloat16}}, kFloat16},
      {{{'d', kInt32}, {'0', kFloat16}, {'s', kFloat64}}, kFloat16},
      {{{'d', kBool}, {'s', kInt64}}, kInt64},
      {{{'d', kBool}, {'0', kUInt8}}, kUInt8},
      {{{'d', kUInt8}, {'s', kBool}}, kUInt8},
      {{{'0', kInt32}, {'s', kInt64}}, kInt32},
      {{{'0', kUInt8}, {'s', kFloat64}}, kFloat32},
      {{{'0', kBFloat16}, {'s', kFloat64}}, kBFloat16},
      {{{'0', kFloat64}, {'d', kFloat32}}, kFloat32},
      {{{'d', kFloat8_e5m2}, {'s', kFloat64}}, kFloat8_e5m2},
      {{{'d', kFloat8_e4m3fn}, {'0', kFloat32}}, kFloat8_e4m3fn},
      {{{'d', kFloat8_e4m3fn}, {'d', kFloat32}}, ScalarType::Undefined},
      {{{'d', kFloat8_e4m3fn}, {'d', kFloat32}, {'d', kFloat32}}, ScalarType::Undefined},
      {{{'d', kInt64}, {'0', kFloat8_e4m3fn}}, ScalarType::Undefined},
      {{{'d', ScalarType::Undefined}, {'d', kInt64}}, kInt64},
  };
  for (const Row& row : rows) {
    for (const bool reversed : {false, true}) {
      std::vector<Operand> operands = row.operands;
      if (reversed) operands.assign(row.operands.rbegin(), row.operands.rend());
      TypePromotion promotion;
      for (const Operand& operand : operands) {
        if (operand.kind == 's')
          promotion.add_scalar(type_category(operand.dtype));
        else
          promotion.add_tensor(operand.dtype, operand.kind == '0');
      }
      INFO("row " << &row - rows << ", reversed " << reversed);
      CHECK(promotion.result() == row.expected);
    }
  }
}

TEST_CASE("dtype: dispatch hands over the storage type", "[dtype]") {
  for (int i = 0; i < kScalarTypeCount; ++i) {
    const auto dtype = static_cast<ScalarType>(i);
    const auto [size, found] =
        dispatch(dtype, []<class T>(std::type_identity<T>) { return std::pair(sizeof(T), dtype_of<T>()); });
    CHECK(size == element_size(dtype));
    CHECK(found == dtype);
  }
  CHECK(dtype_of<std::string>() == ScalarType::Undefined);
  CHECK_THROWS_AS(dispatch(ScalarType::Undefined, [](auto) {}), Error);
}
