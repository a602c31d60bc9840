// Span kernels of patterns (cpu/fused/levels/patterns.h) for one instruction-set level.
//
// Bound<V, E> is an expression E with its attributes, computed in registers V: a tree of the same shape,
// built once per call. Attributes come as an array of pointers to those of the ops, an op before its
// operands, from left to right. SpansOf<Apply<...>> makes the row of a table from it, so that span_table() of
// cpu/kernels/levels/span_loop.h serves lists of patterns as it serves lists of ops. Only plain loops here
// (tools/isa.bzl says why).
#pragma once

#include "cpu/fused/levels/patterns.h"
#include "cpu/kernels/levels/span_loop.h"

namespace retrograd::inline v0::cpu::RG_ISA {

// A condition that is an operand of an op: 1 or 0.
template <class T>
[[gnu::always_inline]] inline Vec<T> as_number(Mask<T> m) {
  return select(m, Vec<T>(static_cast<T>(1)), Vec<T>(static_cast<T>(0)));
}
template <class T>
[[gnu::always_inline]] inline Vec<T> as_number(Vec<T> v) {
  return v;
}

template <class V, class... Es>
struct BoundList;

// An expression with its attributes, computed in registers V. Made from the next of `parts`; `outer` are the
// attributes of the op around it.
template <class V, class E>
struct Bound;

template <class V, int K>
struct Bound<V, patterns::In<K>> {
  template <class Outer>
  Bound(const Outer*, const void* const*&) {}
  [[gnu::always_inline]] V operator()(const V* x) const { return x[K]; }
};

template <class V>
struct Bound<V, patterns::Num> {
  template <class Outer>
  Bound(const Outer* outer, const void* const*&) : number(math::number<V>(outer->scalar)) {}
  [[gnu::always_inline]] V operator()(const V*) const { return number; }
  V number;
};

template <class V, class Op, class... Args>
struct Bound<V, patterns::Apply<Op, Args...>> {
  using Attrs = typename Op::Attrs;
  template <class Outer>
  [[gnu::always_inline]] Bound(const Outer*, const void* const*& parts)
      : given(static_cast<const Attrs*>(*parts++)), attrs(given ? *given : Attrs{}), args(given, parts) {}
  [[gnu::always_inline]] V operator()(const V* x) const {
    V values[sizeof...(Args)];
    args.compute(x, values);
    return as_number(apply<Op>(values, attrs));
  }

  const Attrs* given;  // an accumulation has none
  Attrs attrs;
  BoundList<V, Args...> args;
};

template <class V>
struct BoundList<V> {
  template <class Outer>
  BoundList(const Outer*, const void* const*&) {}
  void compute(const V*, V*) const {}
};
template <class V, class E, class... Es>
struct BoundList<V, E, Es...> {
  template <class Outer>
  [[gnu::always_inline]] BoundList(const Outer* outer, const void* const*& parts)
      : first(outer, parts), rest(outer, parts) {}
  [[gnu::always_inline]] void compute(const V* x, V* values) const {
    *values = first(x);
    rest.compute(x, values + 1);
  }
  Bound<V, E> first;
  BoundList<V, Es...> rest;
};

template <class E, class T>
void pattern_span(void* out, const void* const* in, int64_t n, const void* attrs) {
  using V = Vec<T>;
  const void* const* parts = static_cast<const void* const*>(attrs);
  const Bound<V, E> expression(static_cast<const ops::NoAttrs*>(nullptr), parts);
  run_span<patterns::inputs<E>, T, T>(out, in, n, [&](const V* x) { return expression(x); });
}

template <class Op, class... Args>
struct SpansOf<patterns::Apply<Op, Args...>> {
  using E = patterns::Apply<Op, Args...>;
  static constexpr Spans spans{
      pattern_span<E, float>, pattern_span<E, double>, nullptr, nullptr, nullptr, nullptr, false};
};

}  // namespace retrograd::cpu::RG_ISA
