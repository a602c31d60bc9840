// retrograd::math: the functions of scalar formulas. A formula is a template over its number type V and calls
// math::exp(x), never exp(x) (the public op of that name would be found instead). In kernel files of the CPU (RG_ISA is
// defined) V is a vector register and the functions are those of cpu/vec/vec_math.h. For a device's compiler
// (RG_FORMULAS) V is one number, with the functions of ops/scalar_math.h. Elsewhere formulas are only named, never
// instantiated: declarations suffice.
#pragma once

#include "ops/host_device.h"
#ifndef RG_FORMULAS
#include "engine/symbols.h"
#endif

#if defined(RG_ISA) || defined(RG_FORMULAS)
#ifdef RG_ISA
#include "cpu/vec/vec_math.h"
#include "ops/integers.h"
namespace retrograd::inline v0::math {
using namespace retrograd::cpu::RG_ISA;
}
#else
#include "ops/scalar_math.h"
namespace retrograd::inline v0::math {
using namespace retrograd::scalar;
}
#endif

namespace retrograd::inline v0::math {

/// A number among the attributes, as V.
template <class V>
RG_HD [[gnu::always_inline]] inline V number(const Scalar& s) {
  if constexpr (__is_same(V, Int))
    return V(s.to_int());
  else
    return V(static_cast<typename V::Scalar>(s.to_double()));
}

/// The smallest normal number of V.
template <class V>
RG_HD inline V least_normal() {
  return static_cast<typename V::Scalar>(sizeof(typename V::Scalar) == 8 ? 0x1p-1022 : 0x1p-126);
}

/// x^exponent, with one exponent for all elements; common exponents are computed without pow.
template <class V>
RG_HD [[gnu::always_inline]] inline V power(V x, const Scalar& exponent) {
  if constexpr (__is_same(V, Int)) {
    return pow(x, Int(exponent.to_int()));
  } else {
    const double e = exponent.to_double();
    if (e == 2) return x * x;
    if (e == 1) return x;
    if (e == 0) return 1;
    if (e == 3) return x * x * x;
    if (e == -1) return 1 / x;
    if (e == -2) return 1 / (x * x);
    if (e == 0.5) return sqrt(x);
    if (e == -0.5) return 1 / sqrt(x);
    return pow(x, number<V>(exponent));
  }
}

RG_HD inline bool is_whole(double x) {
  constexpr double kAllWhole = 0x1p53;  // from here on all doubles are integers
  return !(x > -kAllWhole && x < kAllWhole) || static_cast<double>(static_cast<int64_t>(x)) == x;
}

/// y * x^exponent where that can be represented, even if x^exponent alone is too large or too small.
template <class V>
RG_HD [[gnu::always_inline]] inline V times_power(V y, V x, const Scalar& exponent) {
  const double e = exponent.to_double();
  if (e == 0) return y;
  if (e == 1) return y * x;
  if (e == 2) return y * x * x;
  if (e == 3) return y * x * x * x;
  if (e == -1) return y / x;
  if (e == -2) return y / x / x;
  if (e == 0.5) return y * sqrt(x);
  if (e == -0.5) return y / sqrt(x);
  const double half = e * 0.5;
  const bool is_even = is_whole(half);
  const V root = pow(abs(x), V(static_cast<typename V::Scalar>(half)));
  const V size = y * root * root;
  if (is_even) return size;
  if (is_whole(e)) return size * copysign(V(1), x);
  return select((x < 0) & isfinite(x), sqrt(x), size);  // not a number
}

/// e^(-x^2), computed so that the rounding of x^2 does not affect the exponent.
template <class V>
RG_HD [[gnu::always_inline]] inline V exp_of_minus_square(V x) {
  const V near = clamp(x, V(-30), V(30));    // beyond, it is 0
  const V head = nearbyint(near * 16) / 16;  // its square is exact
  return exp(-(head * head)) * exp((head - near) * (head + near));
}

/// x rounded to a multiple of 10^-decimals, ties to even; integers stay as they are.
template <class V>
RG_HD [[gnu::always_inline]] inline V round_decimals(V x, int64_t decimals) {
  if constexpr (__is_same(V, Int)) {
    return x;
  } else {
    if (decimals == 0) return nearbyint(x);
    double power = 1;  // infinite beyond the largest double
    const int64_t digits = decimals < -400 || decimals > 400 ? 400 : decimals < 0 ? -decimals : decimals;
    for (int64_t i = 0; i < digits; ++i) power *= 10;
    const V scale = static_cast<typename V::Scalar>(power);
    return decimals > 0 ? nearbyint(x * scale) / scale : nearbyint(x / scale) * scale;
  }
}
}  // namespace retrograd::math
#else
namespace retrograd::inline v0::math {

/// A placeholder for a function of any arguments: declared only.
struct Named {
  template <class First, class... Rest>
  First operator()(First first, Rest... rest) const;
};
inline constexpr Named abs, exp, exp2, expm1, log, log2, log10, log1p, sqrt, sin, cos, tan, asin, acos, atan,
    sinh, cosh, tanh, asinh, acosh, atanh, erf, erfc, normal_cdf, erfinv, sigmoid, lgamma, digamma, polygamma,
    floor, ceil, trunc, nearbyint, round_decimals, pow, power, times_power, exp_of_minus_square, atan2, hypot,
    fmod, remainder, maximum, minimum, copysign, floor_divide, trunc_divide, isnan, isinf, isfinite, select,
    any, clamp;
template <class V>
V number(const Scalar& s);
template <class V>
V least_normal();

}  // namespace retrograd::math
#endif
