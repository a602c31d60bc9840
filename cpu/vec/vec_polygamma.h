// polygamma(n, x), the (n+1)-th derivative of log Gamma, over Vec<T>: what the derivatives of lgamma and
// digamma need.
//
// For n >= 1 it is (-1)^(n+1) n! zeta(n+1, x) with Hurwitz' zeta(s, x) = sum over k >= 0 of (x + k)^-s
// (DLMF 25.11.12). For x > 0 ten terms are summed and the rest is the Euler-Maclaurin series (DLMF 25.11.28).
// For x < 0 the sum over all integers k, which depends on the fraction of x alone, is completed from both
// sides: with f = x - floor(x), zeta(s, x) = zeta(s, f) + (-1)^s (zeta(s, 1-f) - zeta(s, 1-x)). Error: 1e-14
// relative for n <= 10, away from the zeros that n even has between the poles.
#pragma once

#include "cpu/vec/vec_special.h"

namespace retrograd::inline v0::cpu::RG_ISA {

/// x^-n for n >= 1.
inline Vec<double> inverse_power(Vec<double> x, int n) {
  const Vec<double> inverse = 1 / x;
  Vec<double> p = inverse;
  for (int i = 1; i < n; ++i) p = p * inverse;
  return p;
}

/// zeta(s, x) for x > 0 and an integer s >= 2.
inline Vec<double> hurwitz_zeta(int s, Vec<double> x) {
  // B_2j / (2j)!
  static constexpr double bernoulli[] = {
      0x1.5555555555555p-4,  -0x1.6c16c16c16c17p-10, 0x1.1566abc011567p-15, -0x1.bbd779334ef0bp-21,
      0x1.66a8f2bf70ebep-26, -0x1.22805d644267fp-31, 0x1.d6db2c4e09162p-37, -0x1.7da4e1f79955cp-42};
  Vec<double> sum = 0;
  for (int k = 0; k < 10; ++k) sum = sum + inverse_power(x + k, s);
  const Vec<double> a = x + 10, inverse = 1 / a, square = inverse * inverse;
  Vec<double> term = inverse_power(a, s);  // s (s+1) ... a^-(s+2j-1), j = 0
  sum = sum + (inverse_power(a, s - 1) / (s - 1) + 0.5 * term);  // not term * a: a may be infinite
  term = term * s * inverse;
  for (int j = 1; j <= 8; ++j) {
    sum = sum + bernoulli[j - 1] * term;
    term = term * ((s + 2 * j - 1) * (s + 2.0 * j)) * square;
  }
  return sum;
}

/// n >= 1; +inf or NaN at the poles, 0, -1, -2...: as the two sides agree or not.
inline Vec<double> polygamma(int n, Vec<double> x) {
  const int s = n + 1;
  double factorial = n % 2 ? 1 : -1;
  for (int i = 2; i <= n; ++i) factorial *= i;
  const Mask<double> negative = x <= 0;
  const Vec<double> f = x - floor(x);
  Vec<double> zeta = hurwitz_zeta(s, select(negative, f, x));
  if (any(negative)) {
    const Vec<double> completed = hurwitz_zeta(s, 1 - f) - hurwitz_zeta(s, 1 - select(negative, x, 0));
    zeta = select(negative, s % 2 ? zeta - completed : zeta + completed, zeta);
    zeta = select(negative & (f == 0), s % 2 ? __builtin_nan("") : __builtin_inf(), zeta);
  }
  return factorial * zeta;
}

inline Vec<float> polygamma(int n, Vec<float> x) {
  return through_double([n](Vec<double> w) { return polygamma(n, w); }, x);
}

}  // namespace retrograd::cpu::RG_ISA
