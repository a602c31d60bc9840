// The loop of a span kernel, and span_table() for a family of ops, for one instruction-set level: see
// cpu/kernels/levels/spans.h.
//
// Lane<T> says how elements of T are computed, in registers or one by one; run_span() is the loop, with a
// padded register for the tail; spans_of<Op>() instantiates it for the types that the op has, SpanRows<List>
// for all ops of a list. Each spans_*.cc instantiates some families: all in one source would take minutes to
// compile. Start reading at run_span. Only plain loops here: nothing of the standard library, no throw
// (tools/isa.bzl says why).
#pragma once

#include "cpu/kernels/levels/spans.h"
#include "cpu/vec/vec_math.h"
#include "ops/elementwise.h"
#include "ops/integers.h"

namespace retrograd::inline v0::cpu::RG_ISA {

// How elements of T are computed: in registers of `size`.
template <class T>
struct Lane {
  using V = Vec<T>;
  static constexpr int size = V::size;
  static V load(const T* p) { return V::load(p); }
  static void store(T* p, V v) { v.store(p); }
  static T first(V v) { return v.v[0]; }
  static bool first(Mask<T> m) { return m.v[0] != 0; }
  static void store(T* p, Mask<T> m) { select(m, V(static_cast<T>(1)), V(static_cast<T>(0))).store(p); }
  static void store(bool* p, Mask<T> m) {
    T lanes[size];
    select(m, V(static_cast<T>(1)), V(static_cast<T>(0))).store(lanes);
    for (int i = 0; i < size; ++i) p[i] = lanes[i] != 0;
  }
};
template <>
struct Lane<int64_t> {
  using V = Int;
  static constexpr int size = 1;
  static V load(const int64_t* p) { return V(*p); }
  static int64_t first(V v) { return v.v; }
  static bool first(bool b) { return b; }
  static void store(int64_t* p, V v) { *p = v.v; }
  static void store(bool* p, bool b) { *p = b; }
};

// A bool, as the byte that it is.
template <>
struct Lane<uint8_t> {
  using V = Int;
  static constexpr int size = 1;
  static V load(const uint8_t* p) { return V(static_cast<int>(*p)); }
  static bool first(bool b) { return b; }
  static void store(bool* p, bool b) { *p = b; }
};

template <class Op, class V, class A>
[[gnu::always_inline]] inline auto apply(const V* x, const A& attrs) {
  if constexpr (Op::arity == 1)
    return Op::fwd(x[0], attrs);
  else if constexpr (Op::arity == 2)
    return Op::fwd(x[0], x[1], attrs);
  else
    return Op::fwd(x[0], x[1], x[2], attrs);
}

// out[i] = f(x) for x[k] = in[k][i].
template <int arity, class T, class Out, class F>
[[gnu::always_inline]] inline void run_span(void* out, const void* const* in, int64_t n, const F& f) {
  using L = Lane<T>;
  const T* p[arity];
  for (int k = 0; k < arity; ++k) p[k] = static_cast<const T*>(in[k]);
  Out* o = static_cast<Out*>(out);
  typename L::V x[arity];
  if (n == 1) {  // without a way through memory
    for (int k = 0; k < arity; ++k) x[k] = typename L::V(p[k][0]);
    o[0] = L::first(f(x));
    return;
  }
  int64_t i = 0;
  for (; i + L::size <= n; i += L::size) {
    for (int k = 0; k < arity; ++k) x[k] = L::load(p[k] + i);
    L::store(o + i, f(x));
  }
  if (i == n) return;
  // The tail goes through a padded register of the same code; the padding repeats the last element.
  T lanes[L::size];
  Out result[L::size];
  for (int k = 0; k < arity; ++k) {
    for (int j = 0; j < L::size; ++j) lanes[j] = p[k][i + j < n ? i + j : n - 1];
    x[k] = L::load(lanes);
  }
  L::store(result, f(x));
  for (int j = 0; i + j < n; ++j) o[i + j] = result[j];
}

template <class Op>
typename Op::Attrs attrs_of(const void* attrs) {
  return attrs ? *static_cast<const typename Op::Attrs*>(attrs) : typename Op::Attrs{};
}

template <class Op, class T, class Out>
[[gnu::noinline]] void span(void* out, const void* const* in, int64_t n, const void* attrs) {
  const typename Op::Attrs a = attrs_of<Op>(attrs);
  run_span<Op::arity, T, Out>(out, in, n, [&](const typename Lane<T>::V* x) { return apply<Op>(x, a); });
}

/// Whether floats are computed two registers at a time, by the kernel of cpu/kernels/levels/span_pairs.h: what a file
/// that includes that header says of an op before it makes its table.
template <class Op>
constexpr bool kInPairs = false;
template <class Op>
void span_in_pairs(void* out, const void* const* in, int64_t n, const void* attrs);

template <class Op>
constexpr Spans spans_of() {
  constexpr bool boolean = Op::promotion == ops::Promotion::boolean;
  Spans s{};
  s.boolean = boolean;
  if constexpr (!requires { Op::integers_only; }) {
    if constexpr (kInPairs<Op>)
      s.f32 = span_in_pairs<Op>;
    else
      s.f32 = span<Op, float, std::conditional_t<boolean, bool, float>>;
    s.f64 = span<Op, double, std::conditional_t<boolean, bool, double>>;
  }
  if constexpr (boolean) {
    s.f32_truth = span<Op, float, float>;
    s.f64_truth = span<Op, double, double>;
  }
  if constexpr (Op::integers) s.i64 = span<Op, int64_t, std::conditional_t<boolean, bool, int64_t>>;
  if constexpr (Op::integers && boolean) s.b8 = span<Op, uint8_t, bool>;
  return s;
}
// The row of a list's entry.
template <class Op>
struct SpansOf {
  static constexpr Spans spans = spans_of<Op>();
};

template <class List>
struct SpanRows;
template <class... Ops>
struct SpanRows<ops::OpList<Ops...>> {
  static constexpr Spans rows[] = {SpansOf<Ops>::spans...};
};

template <class List>
SpanTable span_table() {
  return SpanRows<List>::rows;
}

}  // namespace retrograd::cpu::RG_ISA
