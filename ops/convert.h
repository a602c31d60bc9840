// One element in another type, the same on all devices. Inlined always: files compiled for different instruction sets
// include this.
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/float_formats.h"
#include "ops/host_device.h"

namespace retrograd::inline v0 {

/// The float from which a further rounding, to 16 or 8 bits, gives the same as rounding v directly: of the two floats
/// around a value that is not representable, the one whose last bit is 1 (S. Boldo, G. Melquiond, Emulation of FMA and
/// correctly rounded sums, 2008).
template <class From>
RG_HD [[gnu::always_inline]] inline float rounded_to_odd(From v) {
#if defined(__CUDA_ARCH__)
  return static_cast<float>(v);  // a device rounds twice: the code below would need a stack there
#else
  if constexpr (sizeof(From) < 4 || std::is_same_v<From, float>) {
    return static_cast<float>(v);
  } else if constexpr (std::is_integral_v<From>) {
    // Digits beyond those of a double only matter by being nonzero.
    const int64_t whole = v, high = (whole >> 11) | ((whole & 0x7ff) != 0);
    const bool is_exact = whole > -(int64_t{1} << 53) && whole < int64_t{1} << 53;
    return rounded_to_odd(is_exact ? static_cast<double>(whole) : static_cast<double>(high) * 2048);
  } else {
    const auto nearest = static_cast<float>(v);
    const auto back = static_cast<double>(nearest);
    const auto bits = __builtin_bit_cast(uint32_t, nearest);
    // Without branches: which way a value rounds cannot be predicted.
    const bool is_taken = (back == v) | (v != v) | ((bits & 0x7fffffffu) == 0x7f800000u) | ((bits & 1) != 0);
    const bool is_beyond = (back < 0 ? -back : back) > (v < 0 ? -v : v);
    return __builtin_bit_cast(float, bits + (is_taken ? 0u : is_beyond ? ~0u : 1u));
  }
#endif
}

/// Rounded once, except for float64 and int64 on a device, which reach 16 and 8 bits through float32. Floats become
/// integers by truncation (out of range: the smallest integer).
template <class To, class From>
RG_HD [[gnu::always_inline]] inline To convert(From v) {
  if constexpr (std::is_same_v<To, bool>)
    return v != static_cast<From>(0);
  else if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
    const double d = static_cast<double>(v);
    return d >= -9.2233720368547758e18 && d < 9.2233720368547758e18 ? static_cast<To>(static_cast<int64_t>(d))
                                                                    : static_cast<To>(INT64_MIN);
  } else if constexpr (!std::is_integral_v<To> && sizeof(To) <= 2)
    return static_cast<To>(rounded_to_odd(v));
  else
    return static_cast<To>(v);
}

}  // namespace retrograd
