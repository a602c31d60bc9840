// What scatter_reduce makes of the elements that go to one place: where it begins, how an element is added, and the
// result. For host and device.
//
// V is the type that the elements of a place are accumulated in: double or float for floating elements, int64_t (with
// wrap-around) for others.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/host_device.h"

namespace retrograd::inline v0::ops {

enum class ScatterReduction : int64_t { sum, prod, mean, amax, amin };

constexpr bool is_extreme(ScatterReduction how) {
  return how == ScatterReduction::amax || how == ScatterReduction::amin;
}

/// What a place begins with if its own element does not count.
template <class V>
RG_HD V beginning(ScatterReduction how) {
  using Limits = std::numeric_limits<V>;
  constexpr bool is_real = std::is_floating_point_v<V>;
  switch (how) {
    case ScatterReduction::prod: return V(1);
    case ScatterReduction::amax: return is_real ? -Limits::infinity() : Limits::lowest();
    case ScatterReduction::amin: return is_real ? Limits::infinity() : Limits::max();
    default: return V(0);
  }
}

/// `total` and one more element. NaN is both extremes.
template <class V>
RG_HD V with_element(V total, V x, ScatterReduction how) {
  using Wrapping = std::conditional_t<std::is_floating_point_v<V>, V, uint64_t>;
  switch (how) {
    case ScatterReduction::prod:
      return static_cast<V>(static_cast<Wrapping>(total) * static_cast<Wrapping>(x));
    case ScatterReduction::amax: return x > total || x != x ? x : total;
    case ScatterReduction::amin: return x < total || x != x ? x : total;
    default: return static_cast<V>(static_cast<Wrapping>(total) + static_cast<Wrapping>(x));
  }
}

/// The mean of `count` elements; integers are rounded down.
template <class V>
RG_HD V mean_of(V total, int64_t count) {
  if (count == 0) return total;
  if constexpr (std::is_floating_point_v<V>) return total / static_cast<V>(count);
  const V quotient = static_cast<V>(total / static_cast<V>(count));
  return total < 0 && quotient * static_cast<V>(count) != total ? quotient - 1 : quotient;
}

}  // namespace retrograd::ops
