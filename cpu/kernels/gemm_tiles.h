// Register tiles of matrix products, for the kernel files of one instruction-set level: see
// cpu/kernels/gemm_kernels.h.
// Products are added by fused multiply-add where the level has it (AVX2 and up), so sums differ in bits
// between levels; pairs of bfloat16 by vdpbf16ps, which takes subnormal numbers for zeros and rounds after
// each of the two products. Only plain loops and pointers: nothing of the standard library, no throw
// (tools/isa.bzl says why).
//
// The tile of micro() keeps R x V vector registers of sums, V of B and one of A: 12 + 3 of 16 registers, 28 +
// 3 of 32 with AVX-512. Each sum runs over k in order, so an element's bits depend on k and on how the caller
// cuts k, not on its place.
#pragma once

#include "cpu/kernels/gemm_kernels.h"
#include "cpu/vec.h"

namespace retrograd::cpu::RG_ISA {
namespace {

constexpr int kRows = kVectorBytes == 64 ? 14 : 6;
constexpr int kVectors = 2;
constexpr int64_t kFarSteps = 64;  // of k, from which on C is fetched ahead

// Operands of type T as the tiles see them.
template <class T>
using Packed = typename GemmTypes<T>::Packed;
template <class T>
using Sum = typename GemmTypes<T>::Sum;
template <class T>
using Register = typename Format<Sum<T>>::Native;  // of sums, or the same number of packed elements
template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(Sum<T>));

template <class T>
[[gnu::always_inline]] inline Register<T> load(const void* p) {
  return *static_cast<const typename Format<Sum<T>>::Unaligned*>(p);
}
template <class T>
[[gnu::always_inline]] inline void store(Sum<T>* p, Register<T> v) {
  *reinterpret_cast<typename Format<Sum<T>>::Unaligned*>(p) = v;
}

// One packed element in all lanes.
template <class T>
[[gnu::always_inline]] inline Register<T> spread(Packed<T> value) {
#if defined(__AVX512BF16__)
  if constexpr (GemmTypes<T>::group == 2)
    return _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(value)));
  else
#endif
    return static_cast<Sum<T>>(value) - Register<T>{};
}

// a * b + c; both products of a pair.
template <class T>
[[gnu::always_inline]] inline Register<T> multiply_add(Register<T> a, Register<T> b, Register<T> c) {
#if defined(__AVX512BF16__)
  if constexpr (GemmTypes<T>::group == 2)
    return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  else
#endif
    return native_fused(a, b, c);
}

template <class T>
struct MicroTile {
  int64_t k;
  const Packed<T>*a, *b;
  int64_t a_row, a_column, b_row;
  Sum<T>* c;
  int64_t c_row;
  const Sum<T>* start;  // added to the product, unless null
  int64_t start_row;
  Sum<T> alpha;
  int columns;  // written, of the tile's
};

// The sums to their places. Whether the tile is full and what is added are the same for all of it: stores have
// no conditions between them.
template <class T, bool Full, bool Starts, int R, int V>
[[gnu::always_inline]] inline void write_as(const MicroTile<T>& t, const Register<T> (&sum)[R][V]) {
  constexpr int L = kLanes<T>;
  const Register<T> alpha = t.alpha - Register<T>{};
  const int64_t c_row = t.c_row, start_row = t.start_row;
  [[maybe_unused]] const int last = t.columns - (V - 1) * L;
  Sum<T>* c = t.c;
  [[maybe_unused]] const Sum<T>* start = t.start;
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i, c += c_row) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const bool whole = Full || v < V - 1;
      Register<T> x = sum[i][v] * alpha;
      if constexpr (Starts)
        x += whole ? load<T>(start + v * L) : native_load_part(start + v * L, last, Register<T>{});
      if (whole)
        store<T>(c + v * L, x);
      else
        native_store_part(c + v * L, last, x);
    }
    if constexpr (Starts) start += start_row;
  }
}

template <class T, int R, int V>
[[gnu::always_inline]] inline void write(const MicroTile<T>& t, const Register<T> (&sum)[R][V]) {
  if (t.columns == V * kLanes<T>)
    t.start ? write_as<T, true, true>(t, sum) : write_as<T, true, false>(t, sum);
  else
    t.start ? write_as<T, false, true>(t, sum) : write_as<T, false, false>(t, sum);
}

// How operands lie: in packed panels, whose strides are in the code; A in place; both in place, where the last
// columns of B may be the last of the memory. In place, five rows of A share a pointer: an address may add a
// register times 1, 2, 4 or 8.
enum class Lie { packed, a_in_place, in_place };

template <class T, int R, int V, Lie lie>
void micro(const MicroTile<T>& t) {
  constexpr int kShared = 5, L = kLanes<T>;
  constexpr bool InPanel = lie == Lie::packed;
  Register<T> sum[R][V] = {};
  const Packed<T>* a[(R + kShared - 1) / kShared];
  for (int i = 0; i < R; i += kShared) a[i / kShared] = t.a + i * (InPanel ? 1 : t.a_row);
  const Packed<T>* b = t.b;
  const int64_t a_row = InPanel ? 1 : t.a_row, a_column = InPanel ? kRows : t.a_column, b_row = t.b_row;
  if (t.k >= kFarSteps)
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) __builtin_prefetch(t.c + i * t.c_row + v * L, 1);
  for (int64_t l = t.k; l > 0; --l) {
    Register<T> right[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      if constexpr (lie == Lie::in_place)
        right[v] =
            v < V - 1 ? load<T>(b + v * L) : native_load_part(b + v * L, t.columns - v * L, Register<T>{});
      else
        right[v] = load<T>(b + v * L);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const Register<T> left = spread<T>(a[i / kShared][i % kShared * a_row]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][v] = multiply_add<T>(left, right[v], sum[i][v]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < R; i += kShared) a[i / kShared] += a_column;
    b += b_row;
  }
  write<T, R, V>(t, sum);
}

template <class T, Lie lie, int R = kRows>
void micro_rows(const MicroTile<T>& t, int64_t rows) {
  if (rows == R) return t.columns > kLanes<T> ? micro<T, R, kVectors, lie>(t) : micro<T, R, 1, lie>(t);
  if constexpr (R > 1) micro_rows<T, lie, R - 1>(t, rows);
}

template <class T, Lie lie>
void column_panel(const GemmBlock<T>& x, MicroTile<T>& t, int64_t j) {
  const Sum<T>* start = x.start ? x.start : x.accumulate ? x.c : nullptr;
  for (int64_t i = 0; i < x.m; i += kRows) {
    t.a = x.a + i / kRows * x.a_panel;
    t.c = x.c + i * x.c_row + j;
    if (start) t.start = start + i * t.start_row + j;
    micro_rows<T, lie>(t, x.m - i < kRows ? x.m - i : kRows);
  }
}

template <class T>
void block(const GemmBlock<T>& x) {
  constexpr int columns = kVectors * kLanes<T>;
  const bool in_panel = x.a_row == 1 && x.a_column == kRows;
  MicroTile<T> t{};
  t.k = x.k;
  t.a_row = x.a_row;
  t.a_column = x.a_column;
  t.b_row = x.b_row;
  t.c_row = x.c_row;
  t.start_row = x.start ? x.start_row : x.c_row;
  t.alpha = x.alpha;
  t.columns = columns;
  for (int64_t j = 0; j < x.n; j += columns) {
    t.b = x.b + j / columns * x.b_panel;
    if (x.n - j < columns) t.columns = static_cast<int>(x.n - j);
    if constexpr (GemmTypes<T>::group == 1) {
      if (t.columns < columns && !x.b_padded) {
        column_panel<T, Lie::in_place>(x, t, j);
        continue;
      }
      if (!in_panel) {
        column_panel<T, Lie::a_in_place>(x, t, j);
        continue;
      }
    }
    column_panel<T, Lie::packed>(x, t, j);
  }
}

}  // namespace
}  // namespace retrograd::cpu::RG_ISA
