// Modified Bessel functions of the first kind and their derivatives, in double: one text for vectors and devices, as
// ops/special_formulas.h.
//
// With J_m(a) = 1/pi times the integral of (1 - cos t)^m e^(-a (1 - cos t)) over [0, pi], a >= 0 (DLMF 10.32.1):
//   e^-a I_0(a) = J_0, e^-a I_1(a) = J_0 - J_1, and the derivative of J_m is -J_(m+1).
// All integrands are positive, so derivatives to any order are found without cancellation. Up to a = 8, I_0 and I_1 are
// polynomials of a^2; beyond, J_0 and J_1 are polynomials of 16/a - 1. J_2 and higher are sums by Gauss and
// Chebyshev's rule up to a = 30 and the asymptotic series beyond.
#pragma once

#include "ops/special_formulas.h"

#if defined(RG_ISA) || defined(RG_FORMULAS)
namespace retrograd::inline v0::math {

inline constexpr double kBesselNear = 8, kBesselFar = 30;

/// I_0(a) and I_1(a) for a up to kBesselNear.
template <class D>
RG_HD D bessel_i0_near(D a) {
  static constexpr double series[] = {1.0,
                                      0.25,
                                      0.015625,
                                      0.0004340277777777778,
                                      6.781684027777758e-06,
                                      6.781684027778203e-08,
                                      4.7095027970619e-10,
                                      2.402807549583671e-12,
                                      9.385966986098854e-15,
                                      2.896903414473123e-17,
                                      7.242257588753194e-20,
                                      1.4963370838452556e-22,
                                      2.5977414368153943e-25,
                                      3.8439551522008304e-28,
                                      4.888364886932104e-31,
                                      5.566132785039442e-34,
                                      4.596006867582227e-37,
                                      7.1563841038704715e-40};
  return math::polynomial(a * a, series);
}
template <class D>
RG_HD D bessel_i1_near(D a) {
  static constexpr double series[] = {0.5,
                                      0.0625,
                                      0.0026041666666666665,
                                      5.4253472222222226e-05,
                                      6.781684027777773e-07,
                                      5.651403356481591e-09,
                                      3.3639305693326665e-11,
                                      1.5017547184680642e-13,
                                      5.214426104646516e-16,
                                      1.4484517018212629e-18,
                                      3.2919354425983547e-21,
                                      6.234733594318706e-24,
                                      9.991390632392436e-27,
                                      1.3727374047117812e-29,
                                      1.630447729545268e-32,
                                      1.7329954717086137e-35,
                                      1.3769047940227915e-38,
                                      1.9429054278018938e-41};
  return a * math::polynomial(a * a, series);
}

/// J_0(a) and J_1(a) from kBesselNear on.
template <class D>
RG_HD D bessel_j0_far(D a) {
  static constexpr double factor[] = {
      0.40217650944500816,     0.003360551983667876,   0.00013621607437737268, 1.1143033791893046e-05,
      1.483848150861771e-06,   2.973597885290274e-07,  8.871293193604678e-08,  3.9327123085832934e-08,
      2.162446034312458e-08,   7.543775238250733e-09,  -7.116744499757987e-09, -1.335632771743214e-08,
      -4.270649721363825e-09,  7.396966587219158e-09,  5.1432089858622845e-09, -3.21251295103573e-09,
      -2.8927333669603943e-09, 1.1661396927314527e-09, 9.544598596408217e-10,  -3.0719032844097364e-10,
      -1.4445666241808038e-10, 4.135870336904037e-11};
  return math::polynomial(16 / a - 1, factor) / math::sqrt(a);
}
template <class D>
RG_HD D bessel_j1_far(D a) {
  static constexpr double factor[] = {
      0.20444880670617266,    0.005313260124285369,   0.00037396928716702316,  4.493600872570293e-05,
      8.164120968330339e-06,  2.1678038485716687e-06, 8.518512304280548e-07,   4.674682052144619e-07,
      2.522022515615126e-07,  3.183126355409387e-09,  -2.2361830155257043e-07, -2.1386262663954932e-07,
      4.750095002436413e-08,  1.9085465656770612e-07, 1.940610326868179e-08,   -1.2133635368798335e-07,
      -2.168146525136816e-08, 5.818462009810425e-08,  8.755446990681421e-09,   -1.827773976613272e-08,
      -1.452395765963916e-09, 2.7266645916927963e-09};
  return math::polynomial(16 / a - 1, factor) / math::sqrt(a) / a;
}

/// J_m(a) for m >= 2.
template <class D>
RG_HD D bessel_j_sum(int m, D a) {
  // cos((2i + 1) pi / 64)
  static constexpr double nodes[] = {
      0.9987954562051724,  0.989176509964781,   0.970031253194544,   0.9415440651830208,
      0.9039892931234433,  0.8577286100002721,  0.8032075314806449,  0.7409511253549591,
      0.6715589548470183,  0.5956993044924335,  0.5141027441932217,  0.4275550934302822,
      0.33688985339222005, 0.24298017990326398, 0.14673047445536175, 0.049067674327418126};
  D sum = 0;
  for (const double c : nodes) {
    double low = 1, high = 1;
    for (int k = 0; k < m; ++k) low *= 1 - c, high *= 1 + c;
    sum = sum + (low * math::exp((c - 1) * a) + high * math::exp((-1 - c) * a));
  }
  return sum * (1.0 / 32);
}
template <class D>
RG_HD D bessel_j_far(int m, D a) {
  const D inverse = 1 / a;
  D term = kRootHalf * kInverseRootPi * math::sqrt(inverse);
  for (int k = 0; k < m; ++k) term = term * ((k + 0.5) * inverse);
  D sum = term;
  for (int k = 0; k < 24; ++k) {
    term = term * inverse * ((k + 0.5) * (m + k + 0.5) / (2.0 * (k + 1)));
    sum = sum + term;
  }
  return sum;
}
/// J_m(a).
template <class D>
RG_HD D bessel_j(int m, D a) {
  if (m >= 2) return math::select(a < kBesselFar, bessel_j_sum(m, a), bessel_j_far(m, a));
  const D scale = math::exp(-a), i0 = bessel_i0_near(a);
  if (m == 0) return math::select(a <= kBesselNear, scale * i0, bessel_j0_far(a));
  return math::select(a <= kBesselNear, scale * (i0 - bessel_i1_near(a)), bessel_j1_far(a));
}

/// The m-th derivative of e^-|x| I_0(x); 0 at 0 where it jumps.
template <class D>
RG_HD D bessel_i0e(int m, D x) {
  const D j = bessel_j(m, math::abs(x));
  return m % 2 ? math::select(x == 0, 0, math::copysign(j, -x)) : j;
}
/// The m-th derivative of e^-|x| I_1(x); 0 at 0 where it jumps.
template <class D>
RG_HD D bessel_i1e(int m, D x) {
  const D a = math::abs(x);
  if (m % 2) return bessel_j(m + 1, a) - bessel_j(m, a);
  D size;
  if (m == 0)
    size = math::select(a <= kBesselNear, math::exp(-a) * bessel_i1_near(a),
                        bessel_j0_far(a) - bessel_j1_far(a));
  else
    size = bessel_j(m, a) - bessel_j(m + 1, a);
  return math::select(x == 0, 0, size * math::copysign(D(1), x));
}

/// e^-a I_n(a) for n >= 2: e^-a I_0 times the ratios of neighbouring orders, a continued fraction (DLMF 10.33.1); far
/// from 0 by the recurrence of orders (DLMF 10.29.1).
template <class D>
RG_HD D bessel_ie_of_order(int n, D a) {
  D ratio = 0, product = 1;
  for (int k = 64; k >= 1; --k) {
    ratio = a / (2.0 * k + a * ratio);
    if (k <= n) product = product * ratio;
  }
  D before = bessel_j0_far(a), last = before - bessel_j1_far(a);
  for (int k = 1; k < n; ++k) {
    const D next = before - 2.0 * k / a * last;
    before = last;
    last = next;
  }
  return math::select(a < kBesselFar, bessel_j(0, a) * product, last);
}

/// I_n(x) for n >= 0; NaN at infinity, as in PyTorch.
template <class D>
RG_HD D bessel_i(int n, D x) {
  const D a = math::abs(x), root = math::exp(0.5 * a);  // its square may overflow where I_n does not
  D size;
  if (n == 0)
    size = math::select(a <= kBesselNear, bessel_i0_near(a), root * bessel_j0_far(a) * root);
  else if (n == 1)
    size = math::select(a <= kBesselNear, bessel_i1_near(a),
                        root * (bessel_j0_far(a) - bessel_j1_far(a)) * root);
  else
    size = root * bessel_ie_of_order(n, a) * root;
  return n % 2 ? math::copysign(size, x) : size;
}

}  // namespace retrograd::math
#else
namespace retrograd::inline v0::math {

inline constexpr Named bessel_i0e, bessel_i1e, bessel_i;

}  // namespace retrograd::math
#endif
