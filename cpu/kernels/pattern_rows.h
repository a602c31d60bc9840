// Span kernels of patterns (cpu/kernels/patterns.h) for one instruction-set level. Attributes come as an
// array of pointers to those of the ops, an op before its operands, from left to right. Only plain loops here
// (tools/isa.bzl says why).
#pragma once

#include "cpu/kernels/patterns.h"
#include "cpu/kernels/span_rows.h"

namespace retrograd::cpu::RG_ISA {

// A condition that is an operand of an op: 1 or 0.
template <class T>
[[gnu::always_inline]] inline Vec<T> as_number(Mask<T> m) {
  return select(m, Vec<T>(static_cast<T>(1)), Vec<T>(static_cast<T>(0)));
}
template <class T>
[[gnu::always_inline]] inline Vec<T> as_number(Vec<T> v) {
  return v;
}

// An expression with its attributes, computed in registers V.
template <class V, class E>
struct Bound;

template <class V, int K>
struct Bound<V, patterns::In<K>> {
  template <class Attrs>
  Bound(const Attrs&, const void* const*&) {}
  [[gnu::always_inline]] V operator()(const V* x) const { return x[K]; }
};

template <class V>
struct Bound<V, patterns::Num> {
  template <class Attrs>
  Bound(const Attrs& attrs, const void* const*&) : number(math::number<V>(attrs.scalar)) {}
  [[gnu::always_inline]] V operator()(const V*) const { return number; }
  V number;
};

template <class Op>
typename Op::Attrs next_attrs(const void* const*& parts) {
  const void* attrs = *parts++;
  return attrs ? *static_cast<const typename Op::Attrs*>(attrs) : typename Op::Attrs{};
}

template <class V, class Op, class A>
struct Bound<V, patterns::Apply<Op, A>> {
  template <class Outer>
  Bound(const Outer&, const void* const*& parts) : attrs(next_attrs<Op>(parts)), a(attrs, parts) {}
  [[gnu::always_inline]] V operator()(const V* x) const { return as_number(Op::fwd(a(x), attrs)); }
  typename Op::Attrs attrs;
  Bound<V, A> a;
};

template <class V, class Op, class A, class B>
struct Bound<V, patterns::Apply<Op, A, B>> {
  template <class Outer>
  Bound(const Outer&, const void* const*& parts)
      : attrs(next_attrs<Op>(parts)), a(attrs, parts), b(attrs, parts) {}
  [[gnu::always_inline]] V operator()(const V* x) const { return as_number(Op::fwd(a(x), b(x), attrs)); }
  typename Op::Attrs attrs;
  Bound<V, A> a;
  Bound<V, B> b;
};

template <class V, class Op, class A, class B, class C>
struct Bound<V, patterns::Apply<Op, A, B, C>> {
  template <class Outer>
  Bound(const Outer&, const void* const*& parts)
      : attrs(next_attrs<Op>(parts)), a(attrs, parts), b(attrs, parts), c(attrs, parts) {}
  [[gnu::always_inline]] V operator()(const V* x) const {
    return as_number(Op::fwd(a(x), b(x), c(x), attrs));
  }
  typename Op::Attrs attrs;
  Bound<V, A> a;
  Bound<V, B> b;
  Bound<V, C> c;
};

template <class E, class T>
void pattern_span(void* out, const void* const* in, int64_t n, const void* attrs) {
  using V = Vec<T>;
  const void* const* parts = static_cast<const void* const*>(attrs);
  const Bound<V, E> expression(0, parts);
  run_span<patterns::inputs<E>, T, T>(out, in, n, [&](const V* x) { return expression(x); });
}

template <class Op, class... Args>
struct SpansOf<patterns::Apply<Op, Args...>> {
  using E = patterns::Apply<Op, Args...>;
  static constexpr Spans spans{
      pattern_span<E, float>, pattern_span<E, double>, nullptr, nullptr, nullptr, nullptr, false};
};

}  // namespace retrograd::cpu::RG_ISA
