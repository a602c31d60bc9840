// Reductions of a row: the intermediate result of some of its elements, how those of parts are merged, and the
// resulting number. For host and device.
//
//   Reduction      the kinds
//   Partial        the intermediate result of some elements
//   merge<kind>()  the Partial of the union of two parts
//   variance_of(), log_sum_exp_of()   results that are not simply a field of a Partial
// Vector loops of the CPU compute Partials of thousands of elements at a time (cpu/kernels/levels/reduce_rows.h);
// threads of a device compute those of one element (cuda/kernels/reduce.cuh). Both merge them by these formulas, in an
// order that depends only on sizes.
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/host_device.h"

namespace retrograd::inline v0::ops {

enum class Reduction : uint8_t {
  sum,
  abs_sum,
  square_sum,
  power_sum,  // value: sum of x, |x|, x^2, |x|^p
  prod,       // value: product
  max,
  min,
  abs_max,
  abs_min,    // value: of x or |x|, NaN if there is one
  nonzero,    // value: the number of elements that are not 0
  moments,    // value: mean; second: sum of squared differences from it
  logsumexp,  // value: maximum m; second: sum of exp(x - m), without one element that is m
  argmax,
  argmin,  // value, and index of its first position; the first NaN counts as the extreme
};

constexpr bool takes_larger(Reduction kind) {
  return kind == Reduction::max || kind == Reduction::argmax || kind == Reduction::abs_max;
}
constexpr bool is_extreme(Reduction kind) {
  return takes_larger(kind) || kind == Reduction::min || kind == Reduction::argmin ||
         kind == Reduction::abs_min;
}
constexpr bool is_of_magnitude(Reduction kind) {
  return kind == Reduction::abs_sum || kind == Reduction::power_sum || kind == Reduction::abs_max ||
         kind == Reduction::abs_min;
}

/// The intermediate result of `count` elements of a row. V is double for floating elements, int64_t for others
/// (ops/accumulated.h).
template <class V>
struct Partial {
  V value, second;
  int64_t index, count;  // index: the position in the row
};
/// The same, with a scale: where squares and powers would leave the range, they are those of elements divided by
/// 2^exponent.
template <class V>
struct ScaledPartial {
  V value = 0, second = 0;
  int64_t index = 0, count = 0;
  int64_t exponent = 0;
};

/// value * 2^exponent; a call of the C library only where the exponent, as rarely, is not 0.
RG_HD [[gnu::always_inline]] inline double scaled_by_exponent(double value, int64_t exponent) {
  return exponent == 0 ? value : ::ldexp(value, static_cast<int>(exponent));
}

/// The intermediate result of no elements.
template <Reduction kind, class P>
RG_HD P nothing() {
  P p{};
  if constexpr (kind == Reduction::prod) p.value = 1;
  if constexpr (kind == Reduction::logsumexp) p.value = -__builtin_huge_val();
  if constexpr (kind == Reduction::moments) p.value = __builtin_huge_val() - __builtin_huge_val();
  return p;
}

/// Whether b is the extreme rather than a: of two NaN, or of equal values, the first.
template <Reduction kind, class P>
RG_HD bool beats(const P& b, const P& a) {
  const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  if (a_is_nan || b_is_nan) return b_is_nan && (!a_is_nan || b.index < a.index);
  if (a.value == b.value) return b.index < a.index;
  return takes_larger(kind) ? b.value > a.value : b.value < a.value;
}

/// Moments of a union: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
/// variances" (1979).
template <class P>
RG_HD void merge_moments(P& a, const P& b) {
  const double n = static_cast<double>(a.count + b.count), share = static_cast<double>(b.count) / n;
  const double delta = b.value - a.value;
  double distance = delta, in_a = a.second, in_b = b.second;
  if constexpr (requires { a.exponent; }) {
    if (a.exponent || b.exponent) {  // in the largest of the three units
      int64_t unit = a.exponent > b.exponent ? a.exponent : b.exponent;
      if (delta != 0 && delta - delta == 0 && ::ilogb(delta) > unit) unit = ::ilogb(delta);
      in_a = ::ldexp(in_a, static_cast<int>(2 * (a.exponent - unit)));
      in_b = ::ldexp(in_b, static_cast<int>(2 * (b.exponent - unit)));
      distance = ::ldexp(delta, static_cast<int>(-unit));
      a.exponent = unit;
    }
  }
  a.value += delta * share;
  a.second = in_a + (in_b + distance * distance * static_cast<double>(a.count) * share);
}

/// Sums of exponentials are rescaled to the larger of the two maxima.
template <class P>
RG_HD void merge_exponentials(P& a, const P& b) {
  if (a.value == b.value) {
    a.second += b.second + 1;
    return;
  }
  const bool a_is_high = b.value < a.value || a.value != a.value;
  const P high = a_is_high ? a : b, low = a_is_high ? b : a;
  a.second = high.second + (low.second + 1) * ::exp(low.value - high.value);
  a.value = high.value;
}

/// Sums of powers are rescaled to the larger unit; a sum of 0 has none.
template <class P>
RG_HD void merge_powers(P& a, const P& b, double p) {
  if constexpr (requires { a.exponent; }) {
    const int64_t larger = a.exponent > b.exponent ? a.exponent : b.exponent,
                  unit = a.value == 0 ? b.exponent : b.value == 0 ? a.exponent : larger;
    const auto in_unit = [&](const P& x) {
      return x.exponent == unit ? x.value : x.value * ::exp2(static_cast<double>(x.exponent - unit) * p);
    };
    a.value = in_unit(a) + in_unit(b);
    a.exponent = unit;
  } else {
    a.value += b.value;
  }
}

/// Merges the intermediate result of other elements of the row into `a`. p: the exponent of powers, 2 for squares.
template <Reduction kind, class P>
RG_HD void merge(P& a, const P& b, [[maybe_unused]] double p) {
  if constexpr (is_extreme(kind)) {
    if (beats<kind>(b, a)) {
      a.value = b.value;
      a.index = b.index;
    }
  } else if constexpr (kind == Reduction::prod) {
    a.value *= b.value;
  } else if constexpr (kind == Reduction::moments) {
    merge_moments(a, b);
  } else if constexpr (kind == Reduction::logsumexp) {
    merge_exponentials(a, b);
  } else if constexpr (kind == Reduction::square_sum || kind == Reduction::power_sum) {
    merge_powers(a, b, p);
  } else {
    a.value += b.value;
  }
  a.count += b.count;
}

/// From moments, in their unit. NaN if some elements are not finite.
template <class P>
RG_HD double variance_of(const P& p, double count, double correction) {
  const double mean = static_cast<double>(p.value), freedom = count - correction;
  if (mean - mean != 0) return mean - mean;
  return static_cast<double>(p.second) / (freedom > 0 ? freedom : 0);
}

/// log(1 + rest), where log1p takes twice as long: the logarithm of the rounded sum, and what rounding it lost.
RG_HD [[gnu::always_inline]] inline double log_one_plus(double rest) {
  const double sum = 1 + rest;
  return ::log(sum) - ((sum - 1) - rest) / sum;
}

/// From sums of exponentials.
template <class P>
RG_HD double log_sum_exp_of(const P& p) {
  const double max = static_cast<double>(p.value), rest = static_cast<double>(p.second);
  if (max - max != 0) return max;
  return max + log_one_plus(rest);
}

}  // namespace retrograd::ops
