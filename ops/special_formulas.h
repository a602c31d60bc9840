// Formulas of the functions in ops/special.h, for vector registers of the CPU and for a device's thread: one text, in
// terms of the functions of ops/math.h. V is a register or number of float or double, D one of double.
//
// Floats are computed in double and rounded once (in_double): a formula may then lose a few digits of double, as in
// x^2 in an exponent. Sources:
//   erfcx     one polynomial over [0, inf] in the variable of Shepherd and Laframboise (Math. Comp. 36, 1981); its
//             derivatives by their recurrence, or where that cancels by the asymptotic series (DLMF 7.12.1)
//   ndtri     Wichura, Algorithm AS 241 (Appl. Stat. 37, 1988)
//   Bessel functions: ops/bessel_formulas.h
// Polynomials without a source interpolate the function at Chebyshev's nodes. Errors are below 1e-15 of the result,
// except for: exponentials of squares, 1e-16 x^2; derivatives of erfcx, 4e-13 of the first order, 4e-12 of the second
// and 1e-9 of the fifth.
#pragma once

#include "ops/math.h"

#if defined(RG_ISA) || defined(RG_FORMULAS)
namespace retrograd::inline v0::math {

/// f of numbers in double, rounded once to V.
template <class F, class V, class... Rest>
RG_HD [[gnu::always_inline]] inline V in_double(const F& f, V x, Rest... rest) {
  if constexpr (sizeof(typename V::Scalar) == sizeof(double))
    return f(x, rest...);
  else
    return math::through_double(f, x, rest...);
}

inline constexpr double kRootHalf = 0.70710678118654752440, kInverseRootPi = 0.56418958354775628695,
                        kPi = 3.14159265358979323846, kInverseLn2 = 1.44269504088896340736;

/// Whether the sign bit is set, of NaN too.
template <class V>
RG_HD inline auto is_negative(V x) {
  if constexpr (__is_same(V, Int))
    return x < 0;
  else
    return math::copysign(V(1), x) < 0;
}

// ---- the error function, scaled ----

/// e^(x^2) erfc(x).
template <class D>
RG_HD D erfcx(D x) {
  // (1 + 2a) e^(a^2) erfc(a) in t = (a - 4) / (a + 4)
  static constexpr double factor[] = {
      1.2329951186255526,     -0.1396211168405625,     0.01537965210261959,     0.0680970542546913,
      -0.1010390660362999,    0.0937328349984105,      -0.06633036581219905,    0.03716751553632399,
      -0.01619773405968329,   0.0050319699895242515,   -0.000757773262030915,   -0.00019925676026410458,
      0.00015062149237837335, -2.43989944557621e-05,   -1.1221292615314274e-05, 5.709314113532492e-06,
      2.9198219084548256e-07, -8.25078338681245e-07,   7.74606863568198e-08,    1.1025271999000152e-07,
      -2.05545313698593e-08,  -1.4806988146925795e-08, 3.1672611119361695e-09,  1.825695118953907e-09,
      -2.655726616312575e-10, -1.4311318470928162e-10};
  const D a = math::abs(x);
  const D value = math::polynomial(1 - 8 / (a + 4), factor) / (1 + 2 * a);
  return math::select(x < 0, 2 * math::exp(x * x) - value, value);
}

/// The m-th derivative of erfcx for x >= 8, m >= 1.
template <class D>
RG_HD D erfcx_derivative_far(int m, D x) {
  const D inverse = 1 / x, square = inverse * inverse;
  D term = kInverseRootPi * (m % 2 ? -1.0 : 1.0) * inverse;
  for (int k = 1; k <= m; ++k) term = term * (k * inverse);
  D sum = term;
  for (int k = 0; k < 24; ++k) {
    term = term * square * (-0.25 * (2.0 * k + 1 + m) * (2.0 * k + 2 + m) / (k + 1));
    sum = sum + term;
  }
  return sum;
}

/// The m-th derivative of erfcx, m >= 1: f' = 2 x f - 2 / sqrt(pi), f^(k+1) = 2 x f^(k) + 2 k f^(k-1).
template <class D>
RG_HD D erfcx_derivative(int m, D x) {
  D before = erfcx(x), last = 2 * x * before - 2 * kInverseRootPi;
  for (int k = 1; k < m; ++k) {
    const D next = 2 * x * last + 2.0 * k * before;
    before = last;
    last = next;
  }
  const auto far = x > 8;
  return math::any(far) ? math::select(far, erfcx_derivative_far(m, x), last) : last;
}

// ---- the normal distribution ----

template <class V>
RG_HD V ndtr(V x) {
  if constexpr (sizeof(typename V::Scalar) == sizeof(double))
    return 0.5 * math::erfc(-kRootHalf * x);
  else
    return math::through_double([](auto w) { return 0.5 * math::erfc_of_float(-kRootHalf * w); }, x);
}
/// Its density.
template <class D>
RG_HD D normal_density(D x) {
  return math::exp(-0.5 * x * x) * (kRootHalf * kInverseRootPi);
}
template <class D>
RG_HD D log_ndtr(D x) {
  const D z = -kRootHalf * x;
  return math::select(x < -1, math::log(0.5 * erfcx(z)) - 0.5 * x * x, math::log1p(-0.5 * math::erfc(-z)));
}
/// The derivative of log_ndtr.
template <class D>
RG_HD D log_ndtr_slope(D x) {
  return 2 * kRootHalf * kInverseRootPi / erfcx(-kRootHalf * x);
}

/// The x with ndtr(x) = p: -+inf at 0 and 1, NaN beyond.
template <class D>
RG_HD D ndtri(D p) {
  static constexpr double middle[] = {3.387132872796366608,  133.14166789178437745, 1971.5909503065514427,
                                      13731.693765509461125, 45921.953931549871457, 67265.770927008700853,
                                      33430.575583588128105, 2509.0809287301226727},
                          below_middle[] = {1.0,
                                            42.313330701600911252,
                                            687.1870074920579083,
                                            5394.1960214247511077,
                                            21213.794301586595867,
                                            39307.89580009271061,
                                            28729.085735721942674,
                                            5226.495278852545925},
                          near[] = {1.42343711074968357734,  4.6303378461565452959,   5.7694972214606914055,
                                    3.64784832476320460504,  1.27045825245236838258,  .24178072517745061177,
                                    .0227238449892691845833, 7.7454501427834140764e-4},
                          below_near[] = {1.0,
                                          2.05319162663775882187,
                                          1.6763848301838038494,
                                          .68976733498510000455,
                                          .14810397642748007459,
                                          .0151986665636164571966,
                                          5.475938084995344946e-4,
                                          1.05075007164441684324e-9},
                          far[] = {6.6579046435011037772,     5.4637849111641143699,
                                   1.7848265399172913358,     .29656057182850489123,
                                   .026532189526576123093,    .0012426609473880784386,
                                   2.71155556874348757815e-5, 2.01033439929228813265e-7},
                          below_far[] = {1.0,
                                         .59983220655588793769,
                                         .13692988092273580531,
                                         .0148753612908506148525,
                                         7.868691311456132591e-4,
                                         1.8463183175100546818e-5,
                                         1.4215117583164458887e-7,
                                         2.04426310338993978564e-15};
  const D q = p - 0.5, r = 0.180625 - q * q;
  const D central = q * math::polynomial(r, middle) / math::polynomial(r, below_middle);
  const D w = math::sqrt(-math::log(math::select(q < 0, p, 1 - p))), w1 = w - 1.6, w5 = w - 5;
  const D size = math::select(w <= 5, math::polynomial(w1, near) / math::polynomial(w1, below_near),
                              math::polynomial(w5, far) / math::polynomial(w5, below_far));
  const D tail = math::select(math::isinf(w), w, size);
  return math::select(math::abs(q) <= 0.425, central, math::copysign(tail, q));
}

// ---- entropy, sinc, tanhshrink, logit ----

template <class V>
RG_HD V entr(V x) {
  const V other = math::select(math::isnan(x), x, static_cast<typename V::Scalar>(-__builtin_huge_val()));
  return math::select(x > 0, -x * math::log(x), math::select(x == 0, 0, other));
}

/// sin(pi x) and cos(pi x), from the rest of x after multiples of 2.
template <class D>
RG_HD D sin_pi(D x) {
  return math::sin(kPi * (x - 2 * math::nearbyint(0.5 * x)));
}
template <class D>
RG_HD D cos_pi(D x) {
  return math::cos(kPi * (x - 2 * math::nearbyint(0.5 * x)));
}
template <class D>
RG_HD D sinc(D x) {
  return math::select(x == 0, 1, sin_pi(x) / (kPi * x));
}
template <class D>
RG_HD D sinc_slope(D x) {
  // (z cos z - sin z) / z^3 in z^2, |z| <= 1
  static constexpr double near[] = {-0.3333333333333333,     0.03333333333333333,    -0.0011904761904761784,
                                    2.2045855379092596e-05,  -2.505210834766897e-07, 1.9270844541424362e-09,
                                    -1.0705075399218444e-11, 4.4395134340839854e-14};
  const D z = kPi * x;
  return math::select(math::abs(z) < 1, z * math::polynomial(z * z, near) * kPi, (cos_pi(x) - sinc(x)) / x);
}

/// x - tanh(x).
template <class D>
RG_HD D tanhshrink(D x) {
  // (x - tanh x) / x^3 in x^2, |x| <= 0.75
  static constexpr double near[] = {0.3333333333333291,     -0.13333333333150268,   0.05396825383745415,
                                    -0.02186948487620541,   0.008863182747897772,   -0.003591681055761008,
                                    0.0014534522062461296,  -0.0005817520996361481, 0.00022018083451005093,
                                    -6.857928307684862e-05, 1.2331850337801255e-05};
  const D z = x * x;
  return math::select(math::abs(x) < 0.75, x * z * math::polynomial(z, near), x - math::tanh(x));
}

/// log(x / (1 - x)), in two roundings of V more than the logarithm.
template <class V>
RG_HD V logit(V x) {
  const V rest = 1 - x, twice = 2 * x - 1;
  return math::select(math::abs(twice) < 0.5, math::log1p(twice / rest), math::log(x / rest));
}

// ---- two operands ----

/// a log(b), and 0 where a is 0 and b a number.
template <class V>
RG_HD V xlogy(V a, V b) {
  return math::select((a == 0) & !math::isnan(b), 0, a * math::log(b));
}
template <class V>
RG_HD V xlog1py(V a, V b) {
  return math::select((a == 0) & !math::isnan(b), 0, a * math::log1p(b));
}
/// log2(2^a + 2^b).
template <class D>
RG_HD D logaddexp2(D a, D b) {
  // Equal infinities would give inf - inf.
  const D distance = math::select(a == b, 0, math::abs(a - b));
  return math::maximum(a, b) + math::log1p(math::exp2(-distance)) * kInverseLn2;
}

}  // namespace retrograd::math
#else
namespace retrograd::inline v0::math {

inline constexpr Named in_double, is_negative, erfcx, erfcx_derivative, ndtr, normal_density, log_ndtr,
    log_ndtr_slope, ndtri, entr, sinc, sinc_slope, tanhshrink, logit, xlogy, xlog1py, logaddexp2;

}  // namespace retrograd::math
#endif
