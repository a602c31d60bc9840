// One number at a time: the element type V of a formula in a device's thread, and the functions of retrograd::math for
// it.
//
// Lane<T> (T float or double) is a Vec<T> of cpu/vec/vec.h with one lane; Mask<T> is the result of its comparisons.
// They are types of their own and not T, so that a formula means the same for both: `x * 0.5` stays in T, and select()
// knows its operands. Int, of ops/integers.h, serves integers and bools.
//
// The functions are those of C, which nvcc, NVRTC and the host's compiler all have, each with its own errors: on a
// device 1 to 4 ulp (CUDA C++ Programming Guide, mathematical functions), which differ from the CPU's in the last bits.
// Functions that C lacks are computed here, in double where the CPU does so, by the same formulas and with their
// sources: see cpu/vec/vec_special.h and cpu/vec/vec_polygamma.h. Results at the ends of the range (zeros, infinities,
// NaN, poles) are the CPU's.
#pragma once

#include "ops/host_device.h"
#include "ops/integers.h"
#if !defined(__CUDACC_RTC__)
#include <cmath>
#endif

namespace retrograd::inline v0::scalar {

template <class T>
struct Mask {
  bool v;
  RG_HD explicit Mask(bool v) : v(v) {}
  RG_HD friend Mask operator&(Mask a, Mask b) { return Mask(a.v && b.v); }
  RG_HD friend Mask operator|(Mask a, Mask b) { return Mask(a.v || b.v); }
  RG_HD friend Mask operator^(Mask a, Mask b) { return Mask(a.v != b.v); }
  RG_HD friend Mask operator!(Mask a) { return Mask(!a.v); }
};

template <class T>
struct Lane {
  using Scalar = T;
  T v;
  Lane() = default;
  RG_HD Lane(T value) : v(value) {}

  RG_HD friend Lane operator+(Lane a, Lane b) { return a.v + b.v; }
  RG_HD friend Lane operator-(Lane a, Lane b) { return a.v - b.v; }
  RG_HD friend Lane operator*(Lane a, Lane b) { return a.v * b.v; }
  RG_HD friend Lane operator/(Lane a, Lane b) { return a.v / b.v; }
  RG_HD friend Lane operator-(Lane a) { return -a.v; }
  RG_HD friend Mask<T> operator==(Lane a, Lane b) { return Mask<T>(a.v == b.v); }
  RG_HD friend Mask<T> operator!=(Lane a, Lane b) { return Mask<T>(a.v != b.v); }
  RG_HD friend Mask<T> operator<(Lane a, Lane b) { return Mask<T>(a.v < b.v); }
  RG_HD friend Mask<T> operator<=(Lane a, Lane b) { return Mask<T>(a.v <= b.v); }
  RG_HD friend Mask<T> operator>(Lane a, Lane b) { return Mask<T>(a.v > b.v); }
  RG_HD friend Mask<T> operator>=(Lane a, Lane b) { return Mask<T>(a.v >= b.v); }
};

/// Lane<T> where T is known from another argument, so that numbers convert.
template <class T>
struct LaneOf {
  using Type = Lane<T>;
};
template <class T>
using Other = typename LaneOf<T>::Type;

inline constexpr double kInfinity = __builtin_huge_val(), kPi = 3.14159265358979323846;

template <class T>
RG_HD Lane<T> select(Mask<T> mask, Other<T> a, Other<T> b) {
  return mask.v ? a : b;
}
template <class T>
RG_HD bool any(Mask<T> mask) {
  return mask.v;
}
template <class T>
RG_HD Mask<T> isnan(Lane<T> x) {
  return x != x;
}
template <class T>
RG_HD Mask<T> isinf(Lane<T> x) {
  return Mask<T>(x.v == static_cast<T>(kInfinity) || x.v == -static_cast<T>(kInfinity));
}
template <class T>
RG_HD Mask<T> isfinite(Lane<T> x) {
  return Mask<T>(x.v - x.v == 0);
}

/// NaN if either operand is NaN; of +0 and -0 the second operand.
template <class T>
RG_HD Lane<T> maximum(Lane<T> a, Other<T> b) {
  return a.v != a.v || a.v > b.v ? a : b;
}
template <class T>
RG_HD Lane<T> minimum(Lane<T> a, Other<T> b) {
  return a.v != a.v || a.v < b.v ? a : b;
}
/// x kept within [low, high]; NaN stays NaN.
template <class T>
RG_HD Lane<T> clamp(Lane<T> x, Other<T> low, Other<T> high) {
  const T most = high.v < x.v ? high.v : x.v;
  return low.v > most ? low.v : most;
}

// ---- functions of C, by T ----

#define RG_SCALAR_FUNCTION(kind, name, c_name)                             \
  kind inline Lane<float> name(Lane<float> x) { return ::c_name##f(x.v); } \
  kind inline Lane<double> name(Lane<double> x) { return ::c_name(x.v); }
#define RG_SCALAR_FUNCTION_OF_TWO(kind, name, c_name)                                          \
  kind inline Lane<float> name(Lane<float> a, Lane<float> b) { return ::c_name##f(a.v, b.v); } \
  kind inline Lane<double> name(Lane<double> a, Lane<double> b) { return ::c_name(a.v, b.v); }

RG_SCALAR_FUNCTION(RG_HD, abs, fabs)
RG_SCALAR_FUNCTION(RG_HD, sqrt, sqrt)
RG_SCALAR_FUNCTION(RG_HD, exp, exp)
RG_SCALAR_FUNCTION(RG_HD, exp2, exp2)
RG_SCALAR_FUNCTION(RG_HD, expm1, expm1)
RG_SCALAR_FUNCTION(RG_HD, log, log)
RG_SCALAR_FUNCTION(RG_HD, log2, log2)
RG_SCALAR_FUNCTION(RG_HD, log10, log10)
RG_SCALAR_FUNCTION(RG_HD, log1p, log1p)
RG_SCALAR_FUNCTION(RG_HD, tanh, tanh)
RG_SCALAR_FUNCTION(RG_HD, erf, erf)
RG_SCALAR_FUNCTION(RG_HD, floor, floor)
RG_SCALAR_FUNCTION(RG_HD, ceil, ceil)
RG_SCALAR_FUNCTION(RG_HD, trunc, trunc)
RG_SCALAR_FUNCTION(RG_HD, nearbyint, rint)
RG_SCALAR_FUNCTION(RG_HD_CALL, sin, sin)
RG_SCALAR_FUNCTION(RG_HD_CALL, cos, cos)
RG_SCALAR_FUNCTION(RG_HD_CALL, tan, tan)
RG_SCALAR_FUNCTION(RG_HD_CALL, asin, asin)
RG_SCALAR_FUNCTION(RG_HD_CALL, acos, acos)
RG_SCALAR_FUNCTION(RG_HD_CALL, atan, atan)
RG_SCALAR_FUNCTION(RG_HD_CALL, sinh, sinh)
RG_SCALAR_FUNCTION(RG_HD_CALL, cosh, cosh)
RG_SCALAR_FUNCTION(RG_HD_CALL, asinh, asinh)
RG_SCALAR_FUNCTION(RG_HD_CALL, acosh, acosh)
RG_SCALAR_FUNCTION(RG_HD_CALL, atanh, atanh)
RG_SCALAR_FUNCTION(RG_HD_CALL, erfc, erfc)
RG_SCALAR_FUNCTION_OF_TWO(RG_HD_CALL, pow, pow)
RG_SCALAR_FUNCTION_OF_TWO(RG_HD_CALL, atan2, atan2)
RG_SCALAR_FUNCTION_OF_TWO(RG_HD_CALL, hypot, hypot)
RG_SCALAR_FUNCTION_OF_TWO(RG_HD_CALL, fmod, fmod)
RG_SCALAR_FUNCTION_OF_TWO(RG_HD, copysign, copysign)

#undef RG_SCALAR_FUNCTION
#undef RG_SCALAR_FUNCTION_OF_TWO

// The plain lgamma of a host would write the sign to a global variable.
RG_HD_CALL inline Lane<float> lgamma(Lane<float> x) {
#if defined(__CUDA_ARCH__)
  return ::lgammaf(x.v);
#else
  int sign;
  return ::lgammaf_r(x.v, &sign);
#endif
}
RG_HD_CALL inline Lane<double> lgamma(Lane<double> x) {
#if defined(__CUDA_ARCH__)
  return ::lgamma(x.v);
#else
  int sign;
  return ::lgamma_r(x.v, &sign);
#endif
}

/// c[0] + c[1] x + c[2] x^2 + ...
template <class T, int N>
RG_HD Lane<T> polynomial(Lane<T> x, const T (&c)[N]) {
  T sum = c[N - 1];
  for (int i = N - 2; i >= 0; --i) sum = sum * x.v + c[i];
  return sum;
}
/// Applies a function of Lane<double> to a float and rounds once.
template <class F, class... Rest>
RG_HD Lane<float> through_double(const F& f, Lane<float> x, Rest... rest) {
  return static_cast<float>(f(Lane<double>(x.v), Lane<double>(rest.v)...).v);
}

/// erfc for values of floats, for which the CPU has a faster one.
RG_HD inline Lane<double> erfc_of_float(Lane<double> x) { return erfc(x); }

template <class T>
RG_HD Lane<T> sigmoid(Lane<T> x) {
  return 1 / (1 + exp(-x));
}
/// (1 + erf(x / sqrt(2))) / 2, the probability that a standard normal variable is below x.
template <class T>
RG_HD Lane<T> normal_cdf(Lane<T> x) {
  return erfc(x * -0.70710678118654752440) * 0.5;
}

/// torch.remainder: x - floor(x / y) * y, the sign of y.
template <class T>
RG_HD Lane<T> remainder(Lane<T> x, Lane<T> y) {
  const Lane<T> r = fmod(x, y);
  return select((r != 0) & ((r < 0) ^ (y < 0)), r + y, r);
}
template <class T>
RG_HD Lane<T> trunc_divide(Lane<T> a, Lane<T> b) {
  return trunc(a / b);
}
/// The largest integer not above a / b: from the exact remainder, since a / b may round up to an integer. a / b itself
/// for b = 0.
template <class T>
RG_HD Lane<T> floor_divide(Lane<T> a, Lane<T> b) {
  const Lane<T> r = fmod(a, b);
  const Lane<T> above = (a - r) / b;
  const Lane<T> q = select((r != 0) & ((r < 0) ^ (b < 0)), above - 1, above);
  const Lane<T> down = floor(q);
  const Lane<T> whole = select(q - down > 0.5, down + 1, down);
  return select(b == 0, a / b, select(q == 0, copysign(Lane<T>(0), a / b), whole));
}

// ---- functions that C lacks, in double ----

/// The x with erf(x) = y: +-inf at +-1, NaN beyond. Winitzki's formula, then two steps of Halley's method.
RG_HD_CALL inline double inverse_erf(double y) {
  const double a = ::fabs(y), rest = 1 - a;
  if (!(a < 1)) return a == 1 ? ::copysign(kInfinity, y) : ::sqrt(-a);
  constexpr double shape = 0.147, half_root_pi = 0.88622692545275801365;
  const double l = ::log1p(-a * a), b = 2 / (kPi * shape) + 0.5 * l;
  double x = ::sqrt(::sqrt(b * b - l / shape) - b);
  for (int step = 0; step < 2; ++step) {
    const double residual = a < 0.5 ? ::erf(x) - a : rest - ::erfc(x);
    const double newton = residual * half_root_pi * ::exp(x * x);
    x = x - newton / (1 + x * newton);
  }
  return ::copysign(x, y);
}

/// d/dx log |Gamma(x)|: -inf at +0, +inf at -0, NaN at negative integers. Reflection, recurrence up to 10, DLMF 5.11.2.
RG_HD_CALL inline double digamma_of(double x) {
  constexpr double series[] = {0.08333333333333333,   -0.008333333333333333, 0.003968253968253968,
                               -0.004166666666666667, 0.007575757575757576,  -0.021092796092796094,
                               0.08333333333333333};
  const double nearest = ::rint(x);
  if (x == 0) return ::copysign(kInfinity, -x);
  if (x < 0 && nearest == x) return ::sqrt(-1.0);
  double a = x < 0 ? 1 - x : x, sum = x < 0 ? -kPi / ::tan(kPi * (x - nearest)) : 0;
  for (; a < 10; a += 1) sum -= 1 / a;
  const double z = 1 / (a * a);
  double tail = series[6];
  for (int i = 5; i >= 0; --i) tail = tail * z + series[i];
  return sum + (::log(a) - (0.5 / a + z * tail));
}

RG_HD inline double inverse_power(double x, int n) {
  double p = 1;
  for (int i = 0; i < n; ++i) p = p / x;
  return p;
}

/// zeta(s, x) for x > 0 and an integer s >= 2: ten terms, then Euler and Maclaurin's series (DLMF 25.11.28).
RG_HD_CALL inline double hurwitz_zeta(int s, double x) {
  constexpr double bernoulli[] = {0x1.5555555555555p-4,   -0x1.6c16c16c16c17p-10, 0x1.1566abc011567p-15,
                                  -0x1.bbd779334ef0bp-21, 0x1.66a8f2bf70ebep-26,  -0x1.22805d644267fp-31,
                                  0x1.d6db2c4e09162p-37,  -0x1.7da4e1f79955cp-42};  // B_2j / (2j)!
  double sum = 0;
  for (int k = 0; k < 10; ++k) sum += inverse_power(x + k, s);
  const double a = x + 10;
  double term = inverse_power(a, s);
  sum += inverse_power(a, s - 1) / (s - 1) + 0.5 * term;
  term = term * s / a;
  for (int j = 1; j <= 8; ++j) {
    sum += bernoulli[j - 1] * term;
    term = term * ((s + 2 * j - 1) * (s + 2.0 * j)) / (a * a);
  }
  return sum;
}

/// n >= 1. For x <= 0 the sum over all integers is completed from both sides: see cpu/vec/vec_polygamma.h.
RG_HD_CALL inline double polygamma_of(int n, double x) {
  const int s = n + 1;
  double factorial = n % 2 ? 1 : -1;
  for (int i = 2; i <= n; ++i) factorial *= i;
  if (!(x <= 0)) return factorial * hurwitz_zeta(s, x);
  const double f = x - ::floor(x);
  if (f == 0) return factorial * (s % 2 ? ::sqrt(-1.0) : kInfinity);
  const double zeta = hurwitz_zeta(s, f), completed = hurwitz_zeta(s, 1 - f) - hurwitz_zeta(s, 1 - x);
  return factorial * (s % 2 ? zeta - completed : zeta + completed);
}

template <class T>
RG_HD Lane<T> erfinv(Lane<T> y) {
  return static_cast<T>(inverse_erf(y.v));
}
template <class T>
RG_HD Lane<T> digamma(Lane<T> x) {
  return static_cast<T>(digamma_of(x.v));
}
template <class T>
RG_HD Lane<T> polygamma(int n, Lane<T> x) {
  return static_cast<T>(polygamma_of(n, x.v));
}

}  // namespace retrograd::scalar
