// The floating formats that C++20 lacks: Half, BFloat16, Float8_e4m3fn and Float8_e5m2.
//
// Each is a trivially copyable struct around its bit pattern. Arithmetic happens in float: a value converts
// to float implicitly and exactly, and back explicitly, rounding to nearest, ties to even. A double or an
// integer reaches them through float, as in PyTorch.
//
//   format          sign exponent mantissa  largest   beyond the largest
//   Half               1        5       10    65504   infinity
//   BFloat16           1        8        7  3.39e38   infinity
//   Float8_e4m3fn      1        4        3      448   NaN (the format has no infinity; its NaN is 0x7f, 0xff)
//   Float8_e5m2        1        5        2    57344   infinity
//
// "Beyond" means after rounding: 464, half way between 448 and the 480 that e4m3fn gave up for its NaN, is a
// tie and becomes 448; anything above it becomes NaN. A NaN stays a NaN, its payload is not kept.
//
// Start at encode() and decode(): the four structs only choose the layout.
#pragma once

#include <bit>
#include <cstdint>

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace float_formats {

/// Layout of a format of at most 16 bits: field widths, and whether the all-ones exponent means infinity and
/// NaN (IEEE) or holds ordinary numbers except for one NaN ("fn": finite and NaN).
struct Layout {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
  constexpr uint32_t infinity() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
  constexpr uint32_t nan() const {
    return has_infinity ? infinity() | (1u << (mantissa_bits - 1)) : sign_bit() - 1;
  }
};

inline constexpr Layout kHalfLayout{5, 10, true};
inline constexpr Layout kBFloat16Layout{8, 7, true};
inline constexpr Layout kFloat8_e4m3fnLayout{4, 3, false};
inline constexpr Layout kFloat8_e5m2Layout{5, 2, true};

inline constexpr uint32_t kFloatInfinityBits = 0x7f800000u;

/// 2^exponent as a float, for a normal result.
constexpr float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

/// The bits of `value` rounded to nearest even in layout L. All cases are computed and one is selected, so
/// that loops become vector code.
template <Layout L>
constexpr uint32_t encode(float value) {
  constexpr int shift = 23 - L.mantissa_bits;
  constexpr uint32_t rebias = static_cast<uint32_t>(127 - L.bias()) << 23;
  constexpr uint32_t overflow = L.has_infinity ? L.infinity() : L.nan();
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = (bits >> 31) * L.sign_bit();

  // Half a unit less one, plus the lowest kept bit: ties go to even, and a carry moves into the exponent.
  const uint32_t odd = (magnitude >> shift) & 1;
  uint32_t result = (magnitude - rebias + (1u << (shift - 1)) - 1 + odd) >> shift;
  result = result < overflow ? result : overflow;
  if constexpr (L.bias() < 127) {
    // Below the smallest normal number. Adding the power of two whose unit in the last place is the format's
    // smallest subnormal makes the float adder do the rounding.
    constexpr float magic = power_of_two(24 - L.bias() - L.mantissa_bits);
    const uint32_t subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + magic) - std::bit_cast<uint32_t>(magic);
    result = magnitude < rebias + (1u << 23) ? subnormal : result;
  }
  result = magnitude > kFloatInfinityBits ? L.nan() : result;
  return sign | result;
}

/// The exact value of `bits` in layout L; not for BFloat16, whose subnormals are subnormal floats.
template <Layout L>
constexpr float decode(uint32_t bits) {
  static_assert(L.bias() < 127);
  constexpr int shift = 23 - L.mantissa_bits;
  constexpr uint32_t rebias = static_cast<uint32_t>(127 - L.bias()) << 23;
  constexpr float smallest = power_of_two(1 - L.bias() - L.mantissa_bits);
  const uint32_t magnitude = bits & (L.sign_bit() - 1);
  const uint32_t sign = (bits & L.sign_bit()) << (31 - L.exponent_bits - L.mantissa_bits);

  const auto mantissa = static_cast<float>(static_cast<int32_t>(magnitude));  // if subnormal
  const auto subnormal = std::bit_cast<uint32_t>(mantissa * smallest);
  uint32_t result = (magnitude << shift) + rebias;
  result = magnitude < (1u << L.mantissa_bits) ? subnormal : result;
  if (L.has_infinity) result = magnitude == L.infinity() ? kFloatInfinityBits : result;
  const bool is_nan = L.has_infinity ? magnitude > L.infinity() : magnitude == L.nan();
  result = is_nan ? 0x7fc00000u : result;
  return std::bit_cast<float>(sign | result);
}

}  // namespace float_formats

/// IEEE 754 binary16.
struct Half {
  uint16_t bits;

  Half() = default;
  explicit constexpr Half(float value)
      : bits(static_cast<uint16_t>(float_formats::encode<float_formats::kHalfLayout>(value))) {}
  constexpr operator float() const { return float_formats::decode<float_formats::kHalfLayout>(bits); }
  static constexpr Half from_bits(uint16_t bits) {
    Half result(0.0f);
    result.bits = bits;
    return result;
  }
};

/// The upper half of an IEEE 754 binary32.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  explicit constexpr BFloat16(float value)
      : bits(static_cast<uint16_t>(float_formats::encode<float_formats::kBFloat16Layout>(value))) {}
  constexpr operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static constexpr BFloat16 from_bits(uint16_t bits) {
    BFloat16 result(0.0f);
    result.bits = bits;
    return result;
  }
};

/// OCP E4M3: 448 is the largest value; no infinity, overflow and infinity become NaN.
struct Float8_e4m3fn {
  uint8_t bits;

  Float8_e4m3fn() = default;
  explicit constexpr Float8_e4m3fn(float value)
      : bits(static_cast<uint8_t>(float_formats::encode<float_formats::kFloat8_e4m3fnLayout>(value))) {}
  constexpr operator float() const {
    return float_formats::decode<float_formats::kFloat8_e4m3fnLayout>(bits);
  }
  static constexpr Float8_e4m3fn from_bits(uint8_t bits) {
    Float8_e4m3fn result(0.0f);
    result.bits = bits;
    return result;
  }
};

/// OCP E5M2: the upper byte of a Half.
struct Float8_e5m2 {
  uint8_t bits;

  Float8_e5m2() = default;
  explicit constexpr Float8_e5m2(float value)
      : bits(static_cast<uint8_t>(float_formats::encode<float_formats::kFloat8_e5m2Layout>(value))) {}
  constexpr operator float() const { return float_formats::decode<float_formats::kFloat8_e5m2Layout>(bits); }
  static constexpr Float8_e5m2 from_bits(uint8_t bits) {
    Float8_e5m2 result(0.0f);
    result.bits = bits;
    return result;
  }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2);
static_assert(sizeof(Float8_e4m3fn) == 1 && sizeof(Float8_e5m2) == 1);

}  // namespace retrograd
#pragma GCC visibility pop
