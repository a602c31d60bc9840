// One element in another type, the same on all devices. Inlined always: files compiled for different instruction sets include this.
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/float_formats.h"
#include "ops/host_device.h"

namespace retrograd {

/// Floats become integers by truncation (out of range: the smallest integer), float64 reaches the formats of
/// 16 and 8 bits through float32.
template <class To, class From>
RG_HD [[gnu::always_inline]] inline To convert(From v) {
  if constexpr (std::is_same_v<To, bool>)
    return v != static_cast<From>(0);
  else if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
    const double d = static_cast<double>(v);
    return d >= -9.2233720368547758e18 && d < 9.2233720368547758e18 ? static_cast<To>(static_cast<int64_t>(d))
                                                                    : static_cast<To>(INT64_MIN);
  } else if constexpr (!std::is_integral_v<To> && sizeof(To) <= 2)
    return static_cast<To>(static_cast<float>(v));
  else
    return static_cast<To>(v);
}

}  // namespace retrograd
