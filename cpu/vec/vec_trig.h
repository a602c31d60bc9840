// Circular functions over Vec<T>: sin, cos, tan, asin, acos, atan, atan2. Error bounds: cpu/vec/vec_math.h.
//
// The argument of sin, cos and tan is reduced to [-pi/4, pi/4] by subtracting n * pi/2, with pi/2 in three
// parts of which the first two have 37 bits: exact for |n| < 2^16. The remainder is kept in two doubles.
// Floats are reduced in double as well, and only then narrowed; their tangent is narrowed after its quotient.
// Lanes beyond kMaxReduced go to libm.
#pragma once

#include "cpu/vec/vec_exp.h"

namespace retrograd::inline v0::cpu::RG_ISA {

inline constexpr double kMaxReduced = 1e5;
inline constexpr double kHalfPiPart1 = 0x1.921fb5444p+0, kHalfPiPart2 = 0x1.68c234c4cp-39,
                        kHalfPiPart3 = 0x1.98a2e03707345p-77;
inline constexpr double kInverseHalfPi = 0x1.45f306dc9c883p-1;
inline constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
inline constexpr float kHalfPiFloat = 0x1.921fb6p+0f, kHalfPiFloatLow = -0x1.777a5cp-25f;

template <class T>
struct TrigConstants;

template <>
struct TrigConstants<float> {
  // (sin r - r) / r^3 and (cos r - 1 + r^2/2) / r^4 in r^2, |r| <= pi/4
  static constexpr float sin_tail[] = {-0.166666552f, 0.00833217334f, -0.000195166824f};
  static constexpr float cos_tail[] = {0.0416666456f, -0.00138873619f, 2.44377916e-05f};
  // (asin x - x) / x^3 and (atan x - x) / x^3 in x^2, |x| <= 1/2
  static constexpr float asin_tail[] = {0.166666657f,  0.075001031f,  0.0445966274f,
                                        0.0311319102f, 0.0170058329f, 0.0339210071f};
  static constexpr float atan_tail[] = {-0.333333343f, 0.199998826f,   -0.14280051f,
                                        0.110096633f,  -0.0824818537f, 0.0424592234f};
};

template <>
struct TrigConstants<double> {
  static constexpr double sin_tail[] = {-0.16666666666666632,    0.008333333333322316,
                                        -0.00019841269829724766, 2.7557313661797177e-06,
                                        -2.505075321392574e-08,  1.5896501645882547e-10};
  static constexpr double cos_tail[] = {0.0416666666666666,     -0.0013888888888873992,
                                        2.4801587289396363e-05, -2.755731432644505e-07,
                                        2.0875719615245908e-09, -1.135945161584833e-11};
  // (asin x - x) / x^3 in x^2, |x| <= 1/2
  static constexpr double asin_tail[] = {0.16666666666666763,   0.07499999999970111,  0.04464285717527616,
                                         0.030381942675679247,  0.02237221589589741,  0.017351595666192366,
                                         0.01398101664707751,   0.011397307948251596, 0.010789239801277778,
                                         0.0036724862474453207, 0.021789926287759002, -0.021115713516546505,
                                         0.032701541134838225};
  // (atan x - x) / x^3 in x^2, |x| <= tan(pi/8)
  static constexpr double atan_tail[] = {-0.333333333333332,  0.19999999999953239,  -0.14285714280159217,
                                         0.11111110781480216, -0.09090897697563133, 0.07692059086896233,
                                         -0.0666309056574581, 0.05847786372152943,  -0.050388193476701974,
                                         0.03805169170014476, -0.017892542331328955};
};

/// x = quadrant * pi/2 + (r + low), |r| <= pi/4, |low| below r's last bit.
struct Reduced {
  explicit Reduced(Vec<double> x) : quadrant(x * kInverseHalfPi) {
    const Vec<double> n = quadrant.value;
    const Vec<double> a = x - n * kHalfPiPart1;
    const Vec<double> p = n * kHalfPiPart2;
    const Vec<double> b = a - p;
    const Vec<double> t = b - a;  // the exact error of a - p, whichever is larger (Knuth's two-sum)
    const Vec<double> error = (a - (b - t)) - (p + t);
    const Vec<double> rest = error - n * kHalfPiPart3;
    r = b + rest;
    low = (b - r) + rest;
  }

  Rounded<double> quadrant;
  Vec<double> r;
  Vec<double> low;
};

template <class T>
struct SinCos {
  Vec<T> sin;
  Vec<T> cos;
};

/// Of r for |r| <= pi/4.
inline SinCos<float> sincos_reduced(Vec<float> r) {
  using C = TrigConstants<float>;
  const Vec<float> z = r * r;
  return {r + r * z * polynomial(z, C::sin_tail), (1 - 0.5 * z) + z * z * polynomial(z, C::cos_tail)};
}

/// Of r + low for |r| <= pi/4; 1 - r^2 / 2 is kept to twice the precision.
inline SinCos<double> sincos_reduced(Vec<double> r, Vec<double> low) {
  using C = TrigConstants<double>;
  const Vec<double> z = r * r;
  const Vec<double> half = 0.5 * z;
  const Vec<double> w = 1 - half;
  return {r + (r * z * polynomial(z, C::sin_tail) + low * w),
          w + (((1 - w) - half) + (z * z * polynomial(z, C::cos_tail) - r * low))};
}

/// Turns sin and cos of the reduced argument into sin(x): odd quadrants swap, quadrants 2 and 3 negate.
template <class T>
Vec<T> pick_quadrant(const SinCos<T>& s, typename Vec<T>::Bits quadrant) {
  const Mask<T> odd((quadrant & 1) != 0);
  const Vec<T> value = select(odd, s.cos, s.sin);
  return Vec<T>(value.bits() ^ (quadrant >> 1 << (8 * sizeof(T) - 1)));
}

/// sin(x + quarter_turns * pi/2).
[[gnu::always_inline]] inline Vec<double> sin_turned(Vec<double> x, int quarter_turns) {
  const Reduced reduced(x);
  return pick_quadrant(sincos_reduced(reduced.r, reduced.low), reduced.quadrant.bits + quarter_turns);
}

[[gnu::always_inline]] inline Vec<float> sin_turned(Vec<float> x, int quarter_turns) {
  const auto reduce = [](Vec<double> w, Vec<double> n) {
    return (w - n * kHalfPiPart1) - n * (kHalfPiPart2 + kHalfPiPart3);
  };
  const WidePair wide = widen(x);
  const Rounded<double> low(wide.low * kInverseHalfPi), high(wide.high * kInverseHalfPi);
  const Rounded<float> quadrant(narrow({low.value, high.value}));
  const Vec<float> r = narrow({reduce(wide.low, low.value), reduce(wide.high, high.value)});
  return pick_quadrant(sincos_reduced(r), quadrant.bits + quarter_turns);
}

/// Replaces the masked lanes of result by f(x) from libm.
template <class T, class F>
[[gnu::noinline, gnu::cold]] Vec<T> patch_lanes(Mask<T> mask, Vec<T> x, Vec<T> result, F f) {
  return select(mask, map_lanes(f, select(mask, x, 0)), result);
}

/// Replaces the lanes whose argument is too large to be reduced.
template <class T, class F>
[[gnu::always_inline]] inline Vec<T> with_large_arguments(Vec<T> x, Vec<T> result, F f) {
  const Mask<T> large = abs(x) > static_cast<T>(kMaxReduced);
  return any(large) ? patch_lanes(large, x, result, f) : result;
}

[[gnu::always_inline]] inline Vec<float> sin(Vec<float> x) {
  // The reduction makes +0 of -0.
  const Vec<float> result = select(x == 0, x, sin_turned(x, 0));
  return with_large_arguments(x, result, [](float a) { return __builtin_sinf(a); });
}

[[gnu::always_inline]] inline Vec<double> sin(Vec<double> x) {
  const Vec<double> result = select(x == 0, x, sin_turned(x, 0));
  return with_large_arguments(x, result, [](double a) { return __builtin_sin(a); });
}

[[gnu::always_inline]] inline Vec<float> cos(Vec<float> x) {
  return with_large_arguments(x, sin_turned(x, 1), [](float a) { return __builtin_cosf(a); });
}

[[gnu::always_inline]] inline Vec<double> cos(Vec<double> x) {
  return with_large_arguments(x, sin_turned(x, 1), [](double a) { return __builtin_cos(a); });
}

inline Vec<double> tan(Vec<double> x) {
  const Reduced reduced(x);
  const SinCos<double> s = sincos_reduced(reduced.r, reduced.low);
  const Mask<double> odd((reduced.quadrant.bits & 1) != 0);
  const Vec<double> result = select(odd, -s.cos, s.sin) / select(odd, s.sin, s.cos);
  return with_large_arguments(x, select(x == 0, x, result), [](double a) { return __builtin_tan(a); });
}

/// The same for floats in double that are not too large, to 3e-11.
[[gnu::always_inline]] inline Vec<double> tan_of_float(Vec<double> x) {
  // tan r = r top(r^2) / bottom(r^2) on |r| <= pi/4
  static constexpr double top[] = {1.0000000000220872, -0.11136143964420983, 0.001075154689445014};
  static constexpr double bottom[] = {1, -0.44469477131568413, 0.015973391846673846};
  const Rounded<double> n(x * kInverseHalfPi);
  const Vec<double> r = (x - n.value * kHalfPiPart1) - n.value * (kHalfPiPart2 + kHalfPiPart3);
  const Vec<double> z = r * r, a = r * polynomial(z, top), b = polynomial(z, bottom);
  const Mask<double> odd((n.bits & 1) != 0);
  return select(odd, -b, a) / select(odd, a, b);
}

[[gnu::always_inline]] inline Vec<float> tan(Vec<float> x) {
  const Vec<float> result = through_double([](Vec<double> w) { return tan_of_float(w); }, x);
  return with_large_arguments(x, result, [](float a) { return static_cast<float>(__builtin_tan(a)); });
}

/// asin for |x| <= 1/2.
inline Vec<double> asin_small(Vec<double> x) {
  const Vec<double> z = x * x;
  return x + x * z * polynomial(z, TrigConstants<double>::asin_tail);
}

inline Vec<double> asin(Vec<double> x) {
  // asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)); beyond 1 the root is NaN.
  const Vec<double> a = abs(x);
  const Mask<double> inner = a <= 0.5;
  const Vec<double> y = asin_small(select(inner, a, sqrt(0.5 * (1 - a))));
  return copysign(select(inner, y, kHalfPi - ((y + y) - kHalfPiLow)), x);
}

/// What asin and acos of floats share: with `inner` for |x| <= 1/2 they are made of root + tail = asin |x|, else of
/// asin sqrt((1 - |x|) / 2). The tail is small, so that sums with pi/2 are rounded once.
struct AsinParts {
  explicit AsinParts(Vec<float> x) : inner(abs(x) <= 0.5f) {
    const Vec<float> a = abs(x), half = 0.5f * (1 - a), square = select(inner, a * a, half);
    root = select(inner, a, sqrt(half));
    tail = root * square * polynomial(square, TrigConstants<float>::asin_tail);
  }
  Mask<float> inner;
  Vec<float> root, tail;
};

inline Vec<float> asin(Vec<float> x) {
  const AsinParts p(x);
  const Vec<float> twice = p.root + p.root, high = kHalfPiFloat - twice, lost = (kHalfPiFloat - high) - twice;
  const Vec<float> outer = high + (lost - ((p.tail + p.tail) - kHalfPiFloatLow));
  return copysign(select(p.inner, p.root + p.tail, outer), x);
}

inline Vec<double> acos(Vec<double> x) {
  const Vec<double> a = abs(x);
  const Mask<double> inner = a <= 0.5;
  const Vec<double> y = asin_small(select(inner, x, sqrt(0.5 * (1 - a))));
  const Vec<double> twice = y + y;
  const Vec<double> outer = select(x > 0, twice, 2 * kHalfPi - (twice - 2 * kHalfPiLow));
  return select(inner, kHalfPi - (y - kHalfPiLow), outer);
}

inline Vec<float> acos(Vec<float> x) {
  const AsinParts p(x);
  const Vec<float> twice = p.root + p.root, tails = p.tail + p.tail;
  const Vec<float> inner = (kHalfPiFloat - copysign(p.root, x)) - (copysign(p.tail, x) - kHalfPiFloatLow);
  const Vec<float> below = (2 * kHalfPiFloat - twice) - (tails - 2 * kHalfPiFloatLow);
  return select(p.inner, inner, select(x > 0, twice + tails, below));
}

inline Vec<double> atan(Vec<double> x) {
  // Beyond tan(3 pi/8): pi/2 + atan(-1/a); beyond tan(pi/8): pi/4 + atan((a-1)/(a+1)).
  const Vec<double> a = abs(x);
  const Mask<double> large = a > 0x1.3504f333f9de6p+1;
  const Mask<double> middle = a > 0x1.a827999fcef32p-2;
  const Vec<double> numerator = select(large, -1, select(middle, a - 1, a));
  const Vec<double> denominator = select(large, a, select(middle, a + 1, 1));
  const Vec<double> t = numerator / denominator;
  const Vec<double> z = t * t;
  const Vec<double> offset = select(large, 1, select(middle, 0.5, 0));
  const Vec<double> tail = t * z * polynomial(z, TrigConstants<double>::atan_tail) + offset * kHalfPiLow;
  return copysign(offset * kHalfPi + (t + tail), x);
}

inline Vec<float> atan(Vec<float> x) {
  // As above, with 1/2 in place of tan(pi/8): from there on a - 1 is exact.
  const Vec<float> a = abs(x);
  const Mask<float> large = a > 2.41421356f, middle = a > 0.5f;
  const Vec<float> t =
      select(large, -1, select(middle, a - 1, a)) / select(large, a, select(middle, a + 1, 1));
  const Vec<float> z = t * t, offset = select(large, 1, select(middle, 0.5f, 0));
  const Vec<float> tail = t * z * polynomial(z, TrigConstants<float>::atan_tail) + offset * kHalfPiFloatLow;
  const Vec<float> start = offset * kHalfPiFloat, high = start + t, lost = (start - high) + t;
  return copysign(high + (lost + tail), x);
}

/// The angle of the point (x, y), C's special cases included.
inline Vec<double> atan2(Vec<double> y, Vec<double> x) {
  const Vec<double> a = abs(y);
  const Vec<double> b = abs(x);
  const Mask<double> steep = a > b;
  const Vec<double> longer = maximum(a, b);
  const Vec<double> ratio = select(longer == 0, 0, minimum(a, b) / longer);
  Vec<double> angle = atan(select(isinf(a) & isinf(b), 1, ratio));
  angle = select(steep, kHalfPi - (angle - kHalfPiLow), angle);
  angle = select(signbit(x), 2 * kHalfPi - (angle - 2 * kHalfPiLow), angle);
  return copysign(angle, y);
}

inline Vec<float> atan2(Vec<float> y, Vec<float> x) {
  return through_double([](Vec<double> a, Vec<double> b) { return atan2(a, b); }, y, x);
}

}  // namespace retrograd::cpu::RG_ISA
