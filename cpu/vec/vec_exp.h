// Exponentials and logarithms over Vec<T>, and the functions that follow from them: exp, exp2, expm1, log,
// log2, log10, log1p, sigmoid, sinh, cosh, tanh, asinh, acosh, atanh, pow. Error bounds: cpu/vec/vec_math.h.
//
// Two cores carry the file. ExpParts: e^x = 2^n * y with |r| = |x - n ln 2| <= ln(2)/2 and y from a
// polynomial; scale() multiplies by 2^n, so that overflow goes to inf and underflow is gradual, rounded once.
// LogParts: x = 2^k * m with m in [sqrt(1/2), sqrt(2)), and log m from the odd series in s = (m-1)/(m+1)
// (the form of FreeBSD's msun, which needs no extra precision). Constants split in two ("high" with trailing
// zeros, so that k * high is exact). Rare float functions are computed in double and rounded
// once. pow for double calls libm lane by lane.
#pragma once

#include "cpu/vec/vec.h"

namespace retrograd::inline v0::cpu::RG_ISA {

/// c[0] + c[1] x + c[2] x^2 + ..., in two or four interleaved chains (one would wait for each product).
template <class T, int N>
[[gnu::always_inline]] inline Vec<T> polynomial(Vec<T> x, const T (&c)[N]) {
  constexpr int chains = N < 8 ? 2 : 4;
  static_assert(N > chains);
  const Vec<T> square = x * x;
  const Vec<T> step = chains == 2 ? square : square * square;
  Vec<T> sum[chains];
#pragma GCC unroll 4
  for (int i = N - chains; i < N; ++i) sum[i % chains] = c[i];
#pragma GCC unroll 32
  for (int i = N - chains - 1; i >= 0; --i) sum[i % chains] = fused(sum[i % chains], step, Vec<T>(c[i]));
  const Vec<T> low = fused(sum[1], x, sum[0]);
  if constexpr (chains == 2) {
    return low;
  } else {
    return fused(fused(sum[3], x, sum[2]), square, low);
  }
}

/// Applies a function of Vec<double> to floats and rounds once.
template <class F, class... Rest>
Vec<float> through_double(F f, Vec<float> x, Rest... rest) {
  return narrow({f(widen(x).low, widen(rest).low...), f(widen(x).high, widen(rest).high...)});
}

template <class T>
struct ExpLogConstants;

template <>
struct ExpLogConstants<float> {
  static constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
  static constexpr float exp_min = -104, exp_max = 89;  // results beyond are 0 and inf
  static constexpr float exp_normal = 87;               // up to there e^x and e^-x are normal
  // (e^r - 1 - r) / r^2 on |r| <= ln(2)/2
  static constexpr float exp_tail[] = {0.5f, 0.166665405f, 0.0416662768f, 0.0083669126f, 0.00139469618f};
  // (log((1+s)/(1-s)) - 2s) / s^3 in s^2
  static constexpr float log_tail[] = {0.666667759f, 0.399774522f, 0.298743278f};
  // (tanh x - x) / x^3 in x^2, |x| <= 0.625
  static constexpr float tanh_tail[] = {-0.333332837f, 0.133314908f, -0.0537435003f, 0.0206505992f,
                                        -0.00571706286f};
};

template <>
struct ExpLogConstants<double> {
  static constexpr double ln2_high = 0x1.62e42fefp-1, ln2_low = 0x1.473de6af278edp-34;
  static constexpr double exp_min = -746, exp_max = 710, exp_normal = 708;
  static constexpr double exp_tail[] = {0.50000000000000000,   0.16666666666666677,    0.041666666666666706,
                                        0.008333333333321149,  0.001388888888886581,   0.00019841269887494503,
                                        2.480158736254664e-05, 2.7557242699345975e-06, 2.755724107547742e-07,
                                        2.510960495405764e-08, 2.0924960778388644e-09};
  static constexpr double log_tail[] = {0.6666666666666735,  0.3999999999940745,  0.28571428744164334,
                                        0.22222198375297003, 0.18183575357774534, 0.15313750378076363,
                                        0.1479912311570393};
  static constexpr double tanh_tail[] = {
      -0.33333333333332876,   0.13333333333264916,   -0.05396825393248339,   0.021869487601999502,
      -0.008863221319830491,  0.0035919915760610492, -0.0014549705067778988, 0.0005863525926031596,
      -0.0002286334712906463, 7.72194479884416e-05,  -1.610767883424308e-05};
  // (sinh x - x) / x^3 in x^2, |x| <= 1
  static constexpr double sinh_tail[] = {
      0.16666666666666669,    0.008333333333333139,   0.00019841269841437692, 2.7557319155331865e-06,
      2.5052123399476912e-08, 1.6057240263075993e-10, 7.759314707865038e-13};
};

/// x rounded to the nearest integer (ties to even), as T and as bits; |x| < 2^(mantissa - 2).
template <class T>
struct Rounded {
  explicit Rounded(Vec<T> x) : value((x + magic()) - magic()), bits((x + magic()).bits() - magic().bits()) {}

  // Adding 1.5 * 2^mantissa leaves the integer, in two's complement, in the low bits.
  static Vec<T> magic() { return static_cast<T>(int64_t{3} << (Format<T>::mantissa - 1)); }

  Vec<T> value;
  typename Vec<T>::Bits bits;
};

/// x * by rounded to the nearest integer n, the exponent of a power of 2: as Rounded, but a zero may be negative.
template <class T>
struct Exponent {
  using Bits = typename Vec<T>::Bits;

  [[gnu::always_inline]] explicit Exponent(Vec<T> x, T by = 1) {
    const Vec<T> magic = Rounded<T>::magic();
    const Vec<T> product = x * by;
    const Vec<T> sum = kScales ? product + magic : fused(x, by, magic);
    shifted = sum.bits();
    if constexpr (kScales)
      value = Vec<T>(native_nearest(product.v));
    else
      value = sum - magic;
  }
  Bits bits() const { return shifted - Rounded<T>::magic().bits(); }
  /// n where a number has its exponent: added to the bits of a number, it is multiplied by 2^n.
  Bits in_place() const { return shifted << Format<T>::mantissa; }

  Vec<T> value;
  Bits shifted;  // n in the low bits, the rest of it in bits that in_place() shifts out
};

/// y * 2^(n + shift) for |n + shift| < 2 * bias, rounded once. Where no instruction does it, in two steps, of
/// which the first is exact for y near 1.
template <class T>
[[gnu::always_inline]] inline Vec<T> scale(Vec<T> y, const Exponent<T>& n, int shift = 0) {
  if constexpr (kScales) {
    return Vec<T>(native_scale(y.v, (shift == 0 ? n.value : n.value + static_cast<T>(shift)).v));
  } else {
    using Bits = typename Vec<T>::Bits;
    const Bits biased = n.bits() + (2 * Format<T>::bias + shift);
    const Bits half = biased >> 1;
    return y * Vec<T>(half << Format<T>::mantissa) * Vec<T>((biased - half) << Format<T>::mantissa);
  }
}

/// e^x = 2^n * (1 + fraction), |fraction| < 0.42; x must lie within [exp_min, exp_max] or be NaN.
template <class T>
struct ExpParts {
  static constexpr T kInverseLn2 = static_cast<T>(0x1.71547652b82fep+0);

  [[gnu::always_inline]] explicit ExpParts(Vec<T> x) : n(x, kInverseLn2) {
    using C = ExpLogConstants<T>;
    const Vec<T> high = fused(n.value, -C::ln2_high, x);  // exact
    const Vec<T> low = n.value * C::ln2_low;
    const Vec<T> r = high - low;
    fraction = high + fused(r * r, polynomial(r, C::exp_tail), -low);
  }

  Exponent<T> n;
  Vec<T> fraction;
};

/// y * 2^n where 2^n is a normal number.
template <class T>
Vec<T> scale_normal(Vec<T> y, const Exponent<T>& n) {
  if constexpr (kScales)
    return scale(y, n);
  else
    return y * Vec<T>((n.bits() + Format<T>::bias) << Format<T>::mantissa);
}

/// The same where neither y nor the result is subnormal, infinite or NaN.
template <class T>
[[gnu::always_inline]] inline Vec<T> scale_number(Vec<T> y, const Exponent<T>& n) {
  if constexpr (kScales)
    return scale(y, n);
  else
    return Vec<T>(y.bits() + n.in_place());
}

/// e^x * 2^shift, for small shifts: e^x / 2 does not overflow where sinh and cosh do not.
template <class T>
Vec<T> exp_shifted(Vec<T> x, int shift) {
  using C = ExpLogConstants<T>;
  const ExpParts<T> e(clamp(x, C::exp_min, C::exp_max + 1));
  return scale(1 + e.fraction, e.n, shift);
}

/// Whether e^x and e^-x are normal numbers for all lanes.
template <class T>
[[gnu::always_inline]] inline bool have_normal_exp(Vec<T> x) {
  return all(abs(x) <= ExpLogConstants<T>::exp_normal);
}

// All x, and not worth a place in each loop.
template <class T>
[[gnu::noinline]] Vec<T> exp_anywhere(Vec<T> x) {
  using C = ExpLogConstants<T>;
  const ExpParts<T> e(clamp(x, C::exp_min, C::exp_max));
  return scale(1 + e.fraction, e.n);
}

template <class T>
[[gnu::always_inline]] inline Vec<T> exp(Vec<T> x) {
  using C = ExpLogConstants<T>;
  if constexpr (kScales) {
    const ExpParts<T> e(clamp(x, C::exp_min, C::exp_max));
    return scale(1 + e.fraction, e.n);
  } else {
    if (!have_normal_exp(x)) return exp_anywhere(x);
    const ExpParts<T> e(x);
    return scale_number(1 + e.fraction, e.n);
  }
}

/// e^x in double for |x| <= exp_normal, to 1e-10: for results that are rounded to float.
[[gnu::always_inline]] inline Vec<double> exp_for_float(Vec<double> x) {
  // (e^r - 1 - r) / r^2 on |r| <= ln(2)/2
  static constexpr double tail[] = {0.5000000067644366,   0.16666665869403874,  0.04166629508746235,
                                    0.008333497009508318, 0.001394464902857534, 0.000197903526527567};
  const Exponent<double> n(x, ExpParts<double>::kInverseLn2);
  const Vec<double> r = fused(n.value, -0x1.62e42fefa39efp-1, x);
  return scale_number(1 + fused(r * r, polynomial(r, tail), r), n);
}

template <class T>
Vec<T> exp2(Vec<T> x) {
  constexpr T limit = Format<T>::bias + 1;
  x = clamp(x, -limit - Format<T>::mantissa, limit);
  const Exponent<T> n(x);
  const Vec<T> r = (x - n.value) * static_cast<T>(0x1.62e42fefa39efp-1);
  return scale(1 + (r + r * r * polynomial(r, ExpLogConstants<T>::exp_tail)), n);
}

inline Vec<double> expm1(Vec<double> x) {
  // 2^n (1 + fraction) - 1 = 2^n (fraction + (1 - 2^-n)), in which nothing cancels.
  const ExpParts<double> e(clamp(x, -40.0, ExpLogConstants<double>::exp_max));
  const Vec<double> inverse((Format<double>::bias - e.n.bits()) << Format<double>::mantissa);
  const Vec<double> rest = 1 - select(e.n.value > 100, 0, inverse);
  return select(x == 0, x, scale(e.fraction + rest, e.n));
}

inline Vec<float> expm1(Vec<float> x) {
  return through_double([](Vec<double> w) { return expm1(w); }, x);
}

/// log(1 + f) - f for |f| < 0.42.
template <class T>
[[gnu::always_inline]] inline Vec<T> log_tail(Vec<T> f) {
  const Vec<T> s = f / (2 + f);
  const Vec<T> z = s * s;
  const Vec<T> half_square = 0.5 * f * f;
  return s * (half_square + z * polynomial(z, ExpLogConstants<T>::log_tail)) - half_square;
}

/// Normal x = 2^k * (1 + f) > 0 with |f| < 0.42.
template <class T>
struct BinaryParts {
  using Bits = typename Vec<T>::Bits;

  [[gnu::always_inline]] explicit BinaryParts(Vec<T> x) {
    constexpr int mantissa = Format<T>::mantissa;
    const Bits root_half = Vec<T>(static_cast<T>(0x1.6a09e667f3bcdp-1)).bits();
    const Bits shifted = x.bits() + (Vec<T>(1).bits() - root_half);
    f = Vec<T>((shifted & (((Bits{} + 1) << mantissa) - 1)) + root_half) - 1;
    exponent = shifted >> mantissa;
    // An integer in the low bits of 2^mantissa becomes a floating point number by one subtraction.
    const Vec<T> two_to_mantissa = static_cast<T>(int64_t{1} << mantissa);
    biased = Vec<T>(exponent | two_to_mantissa.bits()) - two_to_mantissa;
  }

  Bits exponent;  // k + bias
  Vec<T> biased;
  Vec<T> f;
};

/// log x in double for normal x > 0, to 1.1e-10 of its size or of log 2: for results that are rounded to float.
/// Without a division, which takes longer than the whole polynomial.
[[gnu::always_inline]] inline Vec<double> log_for_float(Vec<double> x) {
  // (log(1 + f) - f) / f^2
  static constexpr double tail[] = {-0.5000000028417606,  0.3333333198251216,   -0.24999938115394635,
                                    0.2000009647822455,   -0.16670327655320752, 0.14285697386600227,
                                    -0.12412643252253082, 0.11021100411037905,  -0.10870510925385735,
                                    0.10726970535050953,  -0.05994084791958905};
  const BinaryParts<double> p(x);
  const Vec<double> k = p.biased - static_cast<double>(Format<double>::bias);
  return fused(k, 0x1.62e42fefa39efp-1, fused(p.f * p.f, polynomial(p.f, tail), p.f));
}

/// x = 2^k * (1 + f) for finite x > 0, and log(1 + f) = f + tail with |f| < 0.42.
template <class T>
struct LogParts {
  [[gnu::always_inline]] explicit LogParts(Vec<T> x) {
    using Bits = typename Vec<T>::Bits;
    constexpr int mantissa = Format<T>::mantissa;
    const Mask<T> subnormal = x < Vec<T>((Bits{} + 1) << mantissa);
    const BinaryParts<T> p(select(subnormal, x * static_cast<T>(int64_t{1} << (mantissa + 1)), x));
    k = p.biased - select(subnormal, Format<T>::bias + mantissa + 1, Format<T>::bias);
    f = p.f;
    tail = log_tail(f);
  }

  Vec<T> k;
  Vec<T> f;
  Vec<T> tail;
};

/// Puts the limits of a logarithm in: -inf at 0, NaN below, inf and NaN unchanged.
template <class T>
[[gnu::always_inline]] inline Vec<T> log_ends(Vec<T> x, Vec<T> result) {
  const Vec<T> inf = static_cast<T>(__builtin_inf());
  const Vec<T> below = select(x == 0, -inf, static_cast<T>(__builtin_nan("")));
  return select(x > 0, select(x < inf, result, x), below);
}

/// log x + correction, for a correction below x's last bit.
template <class T>
[[gnu::always_inline]] inline Vec<T> log_corrected(Vec<T> x, Vec<T> correction) {
  using C = ExpLogConstants<T>;
  const LogParts<T> p(x);
  return p.k * C::ln2_high + (p.f + (p.tail + (p.k * C::ln2_low + correction)));
}

template <class T>
[[gnu::always_inline]] inline Vec<T> log(Vec<T> x) {
  return log_ends(x, log_corrected(x, Vec<T>(0)));
}

template <class T>
Vec<T> log2(Vec<T> x) {
  const LogParts<T> p(x);
  return log_ends(x, p.k + (p.f + p.tail) * static_cast<T>(0x1.71547652b82fep+0));
}

inline Vec<double> log10(Vec<double> x) {
  constexpr double log10_2_high = 0x1.34413509p-2, log10_2_low = 0x1.ef3fde623e256p-35;
  const LogParts<double> p(x);
  const Vec<double> fraction = (p.f + p.tail) * 0x1.bcb7b1526e50ep-2;
  return log_ends(x, p.k * log10_2_high + (fraction + p.k * log10_2_low));
}

inline Vec<float> log10(Vec<float> x) {
  return log_ends(x, through_double([](Vec<double> w) { return 0x1.bcb7b1526e50ep-2 * log_for_float(w); }, x));
}

inline Vec<double> log1p(Vec<double> x) {
  // log(1 + x) = log(u) + error / u, where u + error = 1 + x exactly.
  const Vec<double> u = 1 + x;
  const Vec<double> t = u - 1;
  const Vec<double> error = (1 - (u - t)) + (x - t);
  const Mask<double> inner = (u > 0) & isfinite(u);
  const Vec<double> result = log_ends(u, log_corrected(u, select(inner, error / u, 0)));
  return select(x == 0, x, result);
}

/// With 2^k near 1 + x: k log 2 + log(1 + f) for f = 2^-k (1 + x) - 1, rounded once.
inline Vec<float> log1p(Vec<float> x) {
  using C = ExpLogConstants<float>;
  constexpr uint32_t bias = Format<float>::bias;
  const Vec<float> u = 1 + x;
  const BinaryParts<float> p(u);
  const Vec<float> inverse((2 * bias - p.exponent) << Format<float>::mantissa);  // of 2^k, for k < bias
  const Vec<float> f = select(x < 0x1p30f, fused(x, inverse, inverse - 1), p.f);
  const Vec<float> k = p.biased - static_cast<float>(bias);
  const Vec<float> result = k * C::ln2_high + (f + (log_tail(f) + k * C::ln2_low));
  return copysign(log_ends(u, result), x);
}

// For |x| <= exp_normal. 1 + e^-x = (1 + 2^n) + 2^n fraction, of which the first sum is exact near 0.
template <class T>
[[gnu::always_inline]] inline Vec<T> sigmoid_near(Vec<T> x) {
  const ExpParts<T> e(-x);
  const Vec<T> power = scale_number(Vec<T>(1), e.n);
  return 1 / fused(power, e.fraction, 1 + power);
}

// With e^-|x|, which does not overflow. A lane's result does not depend on the others: those near 0 have the formula
// of sigmoid_near here, too.
template <class T>
[[gnu::noinline]] Vec<T> sigmoid_anywhere(Vec<T> x) {
  constexpr T normal = ExpLogConstants<T>::exp_normal;
  const Vec<T> e = exp_anywhere(-abs(x));
  return select(abs(x) <= normal, sigmoid_near(clamp(x, -normal, normal)), select(x < 0, e, 1) / (1 + e));
}

/// 1 / (1 + e^-x), for results near 0, too.
template <class T>
[[gnu::always_inline]] inline Vec<T> sigmoid(Vec<T> x) {
  return have_normal_exp(x) ? sigmoid_near(x) : sigmoid_anywhere(x);
}

// Far from 0, 1 - 2 / (e^2x + 1) asks less of the exponential: ln 2 need not be split. NaN takes the other way.
template <class T>
[[gnu::always_inline]] inline Vec<T> tanh(Vec<T> x) {
  using C = ExpLogConstants<T>;
  const Vec<T> z = x * x;
  const Vec<T> small = fused(x * z, polynomial(z, C::tanh_tail), x);
  const Vec<T> a = at_most(abs(x), 20);  // tanh(20) rounds to 1
  const Exponent<T> n(a, 2 * ExpParts<T>::kInverseLn2);
  const Vec<T> r = fused(n.value, static_cast<T>(-0x1.62e42fefa39efp-1), a + a);
  const Vec<T> e = scale_number(1 + fused(r * r, polynomial(r, C::exp_tail), r), n);
  const Vec<T> large = 1 - 2 / (e + 1);
  return Vec<T>(select(a >= 0.625, large, small).bits() | (x.bits() & x.sign_bits()));
}

inline Vec<double> sinh(Vec<double> x) {
  const Vec<double> a = abs(x);
  const Vec<double> z = x * x;
  const Vec<double> small = x + x * z * polynomial(z, ExpLogConstants<double>::sinh_tail);
  const Vec<double> half = exp_shifted(a, -1);
  return select(a < 1, small, copysign(half - 0.25 / half, x));
}

inline Vec<float> sinh(Vec<float> x) {
  return through_double([](Vec<double> w) { return sinh(w); }, x);
}

inline Vec<double> cosh(Vec<double> x) {
  const Vec<double> half = exp_shifted(abs(x), -1);
  return half + 0.25 / half;
}

inline Vec<float> cosh(Vec<float> x) {
  return through_double([](Vec<double> w) { return cosh(w); }, x);
}

inline Vec<double> asinh(Vec<double> x) {
  const Vec<double> a = abs(x);
  const Vec<double> square = a * a;
  const Vec<double> near = log1p(a + square / (1 + sqrt(1 + square)));
  const Vec<double> far = log(a) + 0x1.62e42fefa39efp-1;
  return copysign(select(a < 0x1p28, near, far), x);
}

inline Vec<float> asinh(Vec<float> x) {
  return through_double([](Vec<double> w) { return asinh(w); }, x);
}

inline Vec<double> acosh(Vec<double> x) {
  const Vec<double> t = x - 1;
  const Vec<double> near = log1p(t + sqrt(t * (x + 1)));
  const Vec<double> far = log(x) + 0x1.62e42fefa39efp-1;
  return select(x < 1, __builtin_nan(""), select(x < 0x1p28, near, far));
}

inline Vec<float> acosh(Vec<float> x) {
  return through_double([](Vec<double> w) { return acosh(w); }, x);
}

template <class T>
Vec<T> atanh(Vec<T> x) {
  const Vec<T> a = abs(x);
  const Vec<T> twice = a + a;
  const Vec<T> y = fused(twice, a / (1 - a), twice);  // 2 a / (1 - a)
  return select(a > 1, static_cast<T>(__builtin_nan("")), copysign(static_cast<T>(0.5) * log1p(y), x));
}

/// C's pow, special cases included (pow(x, 0) = pow(1, y) = 1 also for NaN).
inline Vec<double> pow(Vec<double> x, Vec<double> y) {
  return map_lanes([](double a, double b) { return __builtin_pow(a, b); }, x, y);
}

/// |x|^y in double, accurate to float; then the sign and the cases in which logarithms say nothing.
inline Vec<double> pow_for_float(Vec<double> x, Vec<double> y) {
  const Vec<double> magnitude = exp2(y * log2(abs(x)));
  const Mask<double> whole = nearbyint(y) == y;
  const Vec<double> half = y * 0.5;
  const Mask<double> odd = whole & (nearbyint(half) != half);
  const Mask<double> negative = signbit(x);
  Vec<double> result = select(negative & odd, -magnitude, magnitude);
  result = select((x < 0) & isfinite(x) & !whole, __builtin_nan(""), result);
  const Mask<double> one = (y == 0) | (x == 1) | ((x == -1) & isinf(y));
  return select(one, 1, result);
}

inline Vec<float> pow(Vec<float> x, Vec<float> y) {
  return through_double([](Vec<double> a, Vec<double> b) { return pow_for_float(a, b); }, x, y);
}

}  // namespace retrograd::cpu::RG_ISA
