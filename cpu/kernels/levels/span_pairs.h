// Span kernels that compute two registers side by side, for formulas around one exponential: whether the fast
// exponential suffices is tested once for both, and they hide each other's latency. Element by element the bits are
// those of a single register.
//
// A file that uses them includes this header before the op's, whose formulas find the functions of Pair by
// name.
#pragma once

#include "cpu/kernels/levels/span_loop.h"
#include "ops/host_device.h"

// Formulas are part of the loop: [[gnu::flatten]] leaves out one that calls another.
#undef RG_HD
#define RG_HD [[gnu::always_inline]]

namespace retrograd::inline v0::cpu::RG_ISA {

template <class T>
struct Pair {
  using Scalar = T;
  Vec<T> a, b;

  Pair() = default;
  [[gnu::always_inline]] Pair(Vec<T> a, Vec<T> b) : a(a), b(b) {}
  [[gnu::always_inline]] Pair(T x) : a(x), b(x) {}

  [[gnu::always_inline]] Pair operator-() const { return {-a, -b}; }
  [[gnu::always_inline]] friend inline Pair operator+(Pair x, Pair y) { return {x.a + y.a, x.b + y.b}; }
  [[gnu::always_inline]] friend inline Pair operator-(Pair x, Pair y) { return {x.a - y.a, x.b - y.b}; }
  [[gnu::always_inline]] friend inline Pair operator*(Pair x, Pair y) { return {x.a * y.a, x.b * y.b}; }
  [[gnu::always_inline]] friend inline Pair operator/(Pair x, Pair y) { return {x.a / y.a, x.b / y.b}; }
};

template <class T>
[[gnu::always_inline]] inline Pair<T> exp(Pair<T> x) {
  constexpr T normal = ExpLogConstants<T>::exp_normal;
  if constexpr (!kScales)
    if (all((abs(x.a) <= normal) & (abs(x.b) <= normal))) {
      const ExpParts<T> a(x.a), b(x.b);
      return {scale_number(1 + a.fraction, a.n), scale_number(1 + b.fraction, b.n)};
    }
  return {exp(x.a), exp(x.b)};
}

template <class T>
[[gnu::always_inline]] inline Pair<T> normal_cdf(Pair<T> x) {
  return {normal_cdf(x.a), normal_cdf(x.b)};
}

template <class Op>
[[gnu::flatten]] void span_in_pairs(void* out, const void* const* in, int64_t n, const void* attrs) {
  constexpr int arity = Op::arity;
  constexpr int64_t size = Vec<float>::size;
  if (n < 2 * size) return span<Op, float, float>(out, in, n, attrs);
  const typename Op::Attrs a = attrs_of<Op>(attrs);
  const float* p[arity];
  for (int k = 0; k < arity; ++k) p[k] = static_cast<const float*>(in[k]);
  float* const o = static_cast<float*>(out);
  int64_t i = 0;
  for (; i + 2 * size <= n; i += 2 * size) {
    Pair<float> x[arity];
    for (int k = 0; k < arity; ++k) x[k] = {Vec<float>::load(p[k] + i), Vec<float>::load(p[k] + i + size)};
    const Pair<float> y = apply<Op>(x, a);
    y.a.store(o + i);
    y.b.store(o + i + size);
  }
  if (i == n) return;
  const void* rest[arity];
  for (int k = 0; k < arity; ++k) rest[k] = p[k] + i;
  span<Op, float, float>(o + i, rest, n - i, attrs);
}

}  // namespace retrograd::cpu::RG_ISA
