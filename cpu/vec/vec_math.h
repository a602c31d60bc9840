// Elementary and special functions over Vec<float> and Vec<double>: everything that a kernel formula calls.
//
// This header adds hypot, fmod, remainder and the rounding divisions to cpu/vec/vec_exp.h,
// cpu/vec/vec_trig.h, cpu/vec/vec_special.h and cpu/vec/vec_polygamma.h, and is the one to include. All
// functions are computed by vector code of our own, equal on all lanes, except: pow, lgamma and fmod of
// doubles, fmod of floats with a large quotient, and sin, cos, tan beyond |x| = 1e5, which call libm lane by
// lane (4-50 ns each).
//
// Worst errors in ulp of the result, over the ranges of tests/cpu/vec_math_test.cc:
// - float: exp, log 1; exp2 1.1; asin, acos 1.2; tanh 1.3; atan 1.4; log1p 1.5; sin, cos, erf 1.6; log2 1.7; atanh 1.9;
//   sigmoid 2.4; normal_cdf has an absolute bound. All others are computed in double and rounded once, 0.51.
// - double: exp, exp2, log, log1p, sin, cos 1; tanh, erf, cosh, acos 1.5; expm1, log2, log10, sinh, asinh,
//   atan 1.8; asin, acosh, atanh, tan, sigmoid 2.3; atan2 2.5; erfc 3; erfinv 4. digamma: 4e-15 of
//   max(1, |result|).
// Special values (zeros, subnormals, infinities, NaN, poles, ends of the range) are those of C's libm.
#pragma once

#include "cpu/vec/vec_exp.h"
#include "cpu/vec/vec_polygamma.h"
#include "cpu/vec/vec_special.h"
#include "cpu/vec/vec_trig.h"

namespace retrograd::inline v0::cpu::RG_ISA {

/// sqrt(x^2 + y^2) without overflow in between; inf if either is inf, even if the other is NaN.
inline Vec<double> hypot(Vec<double> x, Vec<double> y) {
  const Vec<double> a = abs(x);
  const Vec<double> b = abs(y);
  const Vec<double> longer = maximum(a, b);
  const Vec<double> down = select(longer > 0x1p500, 0x1p-600, 1);
  const Vec<double> factor = select(longer < 0x1p-450, 0x1p600, down);
  const Vec<double> result = sqrt(a * factor * (a * factor) + b * factor * (b * factor)) / factor;
  return select(isinf(a) | isinf(b), __builtin_inf(), result);
}

inline Vec<float> hypot(Vec<float> x, Vec<float> y) {
  return through_double([](Vec<double> a, Vec<double> b) { return hypot(a, b); }, x, y);
}

/// x - trunc(x / y) * y exactly; the sign of x.
inline Vec<double> fmod(Vec<double> x, Vec<double> y) {
  return map_lanes([](double a, double b) { return __builtin_fmod(a, b); }, x, y);
}

// In double the quotient of two floats is cut to the right integer below 2^28: it is an integer or at least
// 2^-24 from the next one. Then its product with y and the rest are exact.
inline Vec<float> fmod(Vec<float> x, Vec<float> y) {
  const Mask<float> quick = (abs(x) < abs(y) * 0x1p28f) & (abs(y) < __builtin_inff()) & (abs(y) > 0x1p-90f);
  if (!any(!quick)) {
    return through_double([](Vec<double> a, Vec<double> b) { return copysign(a - trunc(a / b) * b, a); }, x,
                          y);
  }
  return map_lanes([](float a, float b) { return __builtin_fmodf(a, b); }, x, y);
}

/// torch.remainder: x - floor(x / y) * y, the sign of y (not C's remainder).
template <class T>
Vec<T> remainder(Vec<T> x, Vec<T> y) {
  const Vec<T> r = fmod(x, y);
  return select((r != 0) & (signbit(r) ^ signbit(y)), r + y, r);
}

template <class T>
Vec<T> trunc_divide(Vec<T> a, Vec<T> b) {
  return trunc(a / b);
}

/// The largest integer not above a / b: from the exact remainder, since a / b may round up to an integer. a / b
/// itself for b = 0.
template <class T>
Vec<T> floor_divide(Vec<T> a, Vec<T> b) {
  const Vec<T> r = fmod(a, b);
  const Vec<T> above = (a - r) / b;  // an integer but for rounding, 1 too large where r and b differ in sign
  const Vec<T> q = select((r != 0) & ((r < 0) ^ (b < 0)), above - 1, above);
  const Vec<T> down = floor(q);
  const Vec<T> whole = select(q - down > static_cast<T>(0.5), down + 1, down);
  return select(b == 0, a / b, select(q == 0, copysign(Vec<T>(0), a / b), whole));
}

}  // namespace retrograd::cpu::RG_ISA
