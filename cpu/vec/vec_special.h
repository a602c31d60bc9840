// Special functions over Vec<T>: erf, erfc, normal_cdf, erfinv, lgamma, digamma. Error bounds:
// cpu/vec/vec_math.h.
//
// Near zero erf is a polynomial. Beyond 0.92, float uses erf x = 1 - exp(P(x)), double 1 - erfc x with erfc x
// = exp(-x^2) F(t) / (1 + 2x) and one polynomial F over all of [0.5, 27.5] in t = (x - 4) / (x + 4) (the
// substitution of Shepherd and Laframboise, Math. Comp. 36, 1981). x^2 is split so that its rounding error
// does not reach the exponent. erfc of floats is computed in double, by one polynomial of its own. lgamma of
// doubles calls libm lane by lane.
#pragma once

#include "cpu/vec/vec_exp.h"
#include "cpu/vec/vec_trig.h"

namespace retrograd::inline v0::cpu::RG_ISA {

template <class T>
struct ErfConstants;

template <>
struct ErfConstants<float> {
  // erf(x) / x - 1 in x^2, x <= 0.92
  static constexpr float erf_tail[] = {0.128379166f,   -0.376126349f,    0.112837017f,   -0.0268597025f,
                                       0.00520171644f, -0.000814980711f, 8.39779968e-05f};
  // log(erfc(x)) on [0.92, 4]
  static constexpr float log_erfc[] = {-0.000195840243f, -1.12767494f,   -0.637183607f,  -0.103930324f,
                                       0.0222262572f,    -0.0030430383f, 0.000195917557f};
};

template <>
struct ErfConstants<double> {
  static constexpr double erf_tail[] = {
      0.1283791670955126,     -0.37612638903183715,    0.11283791670953053,    -0.026866170644673306,
      0.005223977620213929,   -0.0008548326670961443,  0.00012055317894918859, -1.49252242990804e-05,
      1.6454056662521085e-06, -1.6264489042982661e-07, 1.3987271055789418e-08, -8.346421252926454e-10};
  // exp(x^2) erfc(x) (1 + 2x) = erfc_constant + t * (erfc_factor in t), t = (x - 4) / (x + 4)
  static constexpr double erfc_constant = 1.2329951186255526;
  static constexpr double erfc_factor[] = {
      -0.1396211168405625,     0.015379652102619868,    0.06809705425468886,     -0.1010390660363119,
      0.09373283499851806,     -0.06633036581203705,    0.037167515534094475,    -0.01619773406004364,
      0.005031970015536956,    -0.0007577732721993662,  -0.00019925694719480724, 0.00015062160237218838,
      -2.4398126886710024e-05, -1.1221828272768964e-05, 5.706660964004562e-06,   2.9348272432327445e-07,
      -8.19751765052753e-07,   7.492498280788564e-08,   1.0345560853785198e-07,  -1.8036094625620223e-08,
      -9.72185263428008e-09,   1.8481537825571184e-09};
};

inline constexpr double kErfSmall = 0.92;

template <class T>
Vec<T> erf_small(Vec<T> x) {
  return x + x * polynomial(x * x, ErfConstants<T>::erf_tail);
}

/// erfc for a >= 0.5; 0 beyond the range of double.
inline Vec<double> erfc_large(Vec<double> a) {
  using C = ErfConstants<double>;
  a = clamp(a, 0.5, 27.5);
  const Vec<double> t = (a - 4) / (a + 4);
  const Vec<double> bottom = 2 * a + 1;
  const Vec<double> bottom_error = 1 - (bottom - 2 * a);
  const Vec<double> factor = (C::erfc_constant + t * polynomial(t, C::erfc_factor)) / bottom;
  const Vec<double> head(a.bits() & ~uint64_t{0x7ffffff});  // 26 bits: its square is exact
  const Vec<double> rest = (a - head) * (a + head);
  const ExpParts<double> e(-head * head);
  // All that multiplies 1 + e.fraction, less 1: exp(-rest) and what rounding took from the divisor.
  const Vec<double> shrink = rest * (rest * (0.5 - rest * (1.0 / 6)) - 1) - bottom_error / bottom;
  return scale(factor + factor * (e.fraction + shrink * (1 + e.fraction)), e.n);
}

[[gnu::always_inline]] inline Vec<float> erf(Vec<float> x) {
  const Vec<float> a = clamp(abs(x), 0, 4);  // erf(4) rounds to 1
  const ExpParts<float> e(polynomial(a, ErfConstants<float>::log_erfc));
  const Vec<float> large = 1 - scale_normal(1 + e.fraction, e.n);
  return select(a < kErfSmall, erf_small(x), copysign(large, x));
}

[[gnu::always_inline]] inline Vec<double> erf(Vec<double> x) {
  const Vec<double> a = abs(x);
  return select(a < kErfSmall, erf_small(x), copysign(1 - erfc_large(a), x));
}

inline Vec<double> erfc(Vec<double> x) {
  const Vec<double> a = abs(x);
  const Vec<double> large = erfc_large(a);
  return select(a < 0.5, 1 - erf_small(x), select(x < 0, 2 - large, large));
}

/// The same for floats in double, to 3e-10: there x^2 is exact and exp(x^2) erfc(x) one polynomial over all of
/// [0, 10.2], from where on floats are 0.
[[gnu::always_inline]] inline Vec<double> erfc_of_float(Vec<double> x) {
  // exp(x^2) erfc(x) in t = (x - 4) / (x + 4)
  static constexpr double factor[] = {0.13699945761568594,    -0.2590680492402833,    0.2187196814625019,
                                      -0.16425778807111463,   0.10896309584515051,    -0.06310833304457564,
                                      0.03129979950235396,    -0.012839747158000755,  0.00405870812579285,
                                      -0.0008151099183053061, -2.826367074672279e-05, 0.0001015065115089803};
  const Vec<double> a = at_most(abs(x), 10.2);
  const Vec<double> large = exp_for_float(-a * a) * polynomial((a - 4) / (a + 4), factor);
  return select(x < 0, 2 - large, large);
}

[[gnu::always_inline]] inline Vec<float> erfc(Vec<float> x) {
  return through_double([](Vec<double> w) { return erfc_of_float(w); }, x);
}

/// The probability that a standard normal variable is below x, to 2^-21 of it but for the rounding of x^2 in the
/// exponent. Next to exp(-0.5 * x * x), which a formula may want, too, it costs little.
[[gnu::always_inline]] inline Vec<float> normal_cdf(Vec<float> x) {
  // exp(a^2) erfc(a) / 2 = t * tail(t), t = 1 / (1 + 0.375 a), up to where the exponential is 0.
  static constexpr float tail[] = {0.105806738f,  0.105324827f, 0.102656744f,  0.0607524663f, 0.136862352f,
                                   -0.114706703f, 0.216199338f, -0.143665045f, 0.0307692904f};
  const Vec<float> t = 1 / (1 + 0.265165043f * abs(x));
  const Vec<float> below = exp(-0.5f * x * x) * (t * polynomial(t, tail));
  return select(x < 0, below, 1 - below);
}
inline Vec<double> normal_cdf(Vec<double> x) { return 0.5 * erfc(x * -0.70710678118654752440); }

/// The x with erf(x) = y: +-inf at +-1, NaN beyond.
inline Vec<double> erfinv(Vec<double> y) {
  // Winitzki's formula gives three digits, each step of Halley's method triples them. Near 1, the equation is
  // written with erfc, for which 1 - |y| is exact.
  constexpr double shape = 0.147, half_root_pi = 0x1.c5bf891b4ef6bp-1;
  const Vec<double> a = abs(y);
  const Vec<double> rest = 1 - a;
  const Vec<double> l = log1p(-a * a);
  const Vec<double> b = 2 / (2 * kHalfPi * shape) + 0.5 * l;
  Vec<double> x = sqrt(sqrt(b * b - l / shape) - b);
  x = select(a < 1, x, 0);
  for (int step = 0; step < 2; ++step) {
    const Vec<double> residual = select(a < 0.5, erf(x) - a, rest - erfc(x));
    const Vec<double> newton = residual * half_root_pi * exp(x * x);
    x = x - newton / (1 + x * newton);
  }
  const Vec<double> end = select(a == 1, Vec<double>(__builtin_inf()), __builtin_nan(""));
  return copysign(select(a < 1, x, end), y);
}

/// erfinv(y) / y for y near the ends, beyond them and NaN; p = 1 - y^2, w = -log p where p > 0. Rare, and not worth a
/// place in the loop.
[[gnu::noinline]] inline Vec<double> erfinv_ratio_far(Vec<double> p, Vec<double> w) {
  static constexpr double tail[] = {3.0015268115722904,    1.0042970102990119,     0.006403721630861644,
                                    -0.004692718444308036, 0.0032864299206187813,  -0.002205920732919931,
                                    0.001157220550856929,  -0.0003574134975054021, -4.0006036512977405e-05,
                                    0.000124157708603173,  -5.893343535296967e-05, -5.813600573486958e-06,
                                    1.0149120797070728e-05};
  const Vec<double> end = select(p == 0, __builtin_inf(), __builtin_nan(""));
  return select(p > 0, polynomial(sqrt(w) - 3.1680339887498947, tail), end);
}

/// The same for floats in double: y times a polynomial of w = -log(1 - y^2), or of its root where it is large (the
/// variables of M. Giles, Approximating the erfinv function, 2010), good to 3e-10 up to 1 - 2^-24.
[[gnu::always_inline]] inline Vec<double> erfinv_of_float(Vec<double> y) {
  static constexpr double central[] = {
      1.5014093511388078,     0.24664027679066095,     -0.004177318131330305,   -0.001252708100480676,
      0.00021825124688243757, -4.995866595524789e-06,  -3.4175220528637405e-06, 4.786394607133855e-07,
      1.3816774440372998e-08, -1.0853547368826586e-08, 8.149116679747337e-10,   1.2297984288969083e-10,
      -2.0256112999799504e-11};
  const Vec<double> p = (1 - y) * (1 + y);
  const Vec<double> w = -log_for_float(p);
  Vec<double> ratio = polynomial(w - 2.5, central);
  const Mask<double> far = !(p > 0x1.b993fe00d5376p-8);  // e^-5; NaN, too
  if (any(far)) ratio = select(far, erfinv_ratio_far(p, w), ratio);
  return y * ratio;
}

[[gnu::always_inline]] inline Vec<float> erfinv(Vec<float> y) {
  return through_double([](Vec<double> w) { return erfinv_of_float(w); }, y);
}

/// log |Gamma(x)|.
inline Vec<double> lgamma(Vec<double> x) {
  int sign;  // lgamma proper would write the sign to a global
  return map_lanes([&](double a) { return __builtin_lgamma_r(a, &sign); }, x);
}

/// log Gamma(a) for values of floats, a >= 0, in double. Up to 2.5 it is t times a polynomial in t = a - 2 on
/// [-0.5, 0.5], by Gamma(a + 1) = a Gamma(a) for smaller a: so the zeros at 1 and 2 keep their digits. Beyond, it
/// is Stirling's series from 8 on (DLMF 5.11.1).
inline Vec<double> lgamma_small(Vec<double> a) {
  static constexpr double ratio[] = {0.4227843350997846,     0.32246703340687355,    -0.06735230143319973,
                                     0.02058080993433963,    -0.007385533331847202,  0.0028904723206376855,
                                     -0.0011930539144543069, 0.0005100811857037604,  -0.00022087344760379768,
                                     9.73091286824157e-05,   -5.278141035258699e-05, 2.5736593842307087e-05};
  const Vec<double> factor = select(a < 1.5, a, 1) * select(a < 0.5, a + 1, 1);
  const Vec<double> t = a + select(a < 1.5, 1, 0) + select(a < 0.5, 1, 0) - 2;
  return t * polynomial(t, ratio) - log(factor);
}

inline Vec<double> lgamma_large(Vec<double> a) {
  static constexpr double series[] = {0.08333333333333333,    -0.002777777777777778, 0.0007936507936507937,
                                      -0.0005952380952380953, 0.0008417508417508417, -0.0019175269175269176};
  constexpr double half_log_two_pi = 0.9189385332046728;
  Vec<double> z = a, factor = 1;
  for (int i = 0; i < 6; ++i) {
    const Mask<double> low = z < 8;
    factor = select(low, factor * z, factor);
    z = select(low, z + 1, z);
  }
  const Vec<double> inverse = 1 / z;
  return (z - 0.5) * log(z) - z + half_log_two_pi + inverse * polynomial(inverse * inverse, series) -
         log(factor);
}

// Negative x by reflection: Gamma(x) Gamma(1 - x) = pi / sin(pi x), with Gamma(1 + a) = a Gamma(a).
inline Vec<double> lgamma_of_float(Vec<double> x) {
  const Vec<double> a = abs(x);
  Vec<double> result = lgamma_small(a);
  const Mask<double> large = a > 2.5;
  if (any(large)) result = select(large, lgamma_large(a), result);
  if (any(signbit(x) & (x != 0))) {
    const Vec<double> sine = abs(sin(2 * kHalfPi * (a - nearbyint(a))));
    result = select(x < 0, log(2 * kHalfPi / (a * sine)) - result, result);
  }
  return select(isinf(x), a, result);
}

inline Vec<float> lgamma(Vec<float> x) {
  return through_double([](Vec<double> a) { return lgamma_of_float(a); }, x);
}

/// d/dx log |Gamma(x)|: -inf at +0, +inf at -0, NaN at negative integers (as torch.digamma).
inline Vec<double> digamma(Vec<double> x) {
  // B_2k / 2k of the asymptotic series (DLMF 5.11.2), good to 1e-17 from 10 on.
  static constexpr double series[] = {0.08333333333333333,   -0.008333333333333333, 0.003968253968253968,
                                      -0.004166666666666667, 0.007575757575757576,  -0.021092796092796094,
                                      0.08333333333333333};
  const Vec<double> nearest = nearbyint(x);
  const Mask<double> negative = x < 0;
  // Reflection: digamma(x) = digamma(1 - x) - pi / tan(pi x).
  const Vec<double> tangent = tan(2 * kHalfPi * (x - nearest));
  const Vec<double> reflected = select(negative, 2 * kHalfPi / tangent, 0);
  Vec<double> a = select(negative, 1 - x, x);
  Vec<double> sum = -reflected;
  for (int i = 0; i < 10; ++i) {  // Recurrence: digamma(a) = digamma(a + 1) - 1 / a.
    const Mask<double> low = a < 10;
    sum = sum - select(low, 1 / a, 0);
    a = select(low, a + 1, a);
  }
  const Vec<double> z = 1 / (a * a);
  const Vec<double> result = sum + (log(a) - (0.5 / a + z * polynomial(z, series)));
  const Vec<double> pole = copysign(Vec<double>(__builtin_inf()), -x);
  const Mask<double> undefined = negative & (nearest == x);
  return select(x == 0, pole, select(undefined, __builtin_nan(""), result));
}

inline Vec<float> digamma(Vec<float> x) {
  return through_double([](Vec<double> w) { return digamma(w); }, x);
}

}  // namespace retrograd::cpu::RG_ISA
