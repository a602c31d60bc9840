// A register tile of a matrix product and how its sums get to their places, for the kernel files of one
// instruction-set level: see cpu/gemm/levels/gemm_kernels.h, and cpu/gemm/levels/gemm_tiles.h for what
// computes them.
//
// Sums are multiplied by alpha, what they start from is added, and they are stored, those of bfloat16 rounded
// where that is wanted. Whether the tile is full and what is added are the same for all of it: stores have no
// conditions between them.
#pragma once

#include "cpu/gemm/levels/gemm_registers.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

// Places in memory, one after the other, that are fetched: none where the first one is not below the end. What lies
// beyond a matrix is not fetched: where nothing is mapped each such fetch takes as long as an access that faults.
struct Lines {
  const char* at;
  int64_t step;  // bytes
  const char* end;
};

template <class T>
struct MicroTile {
  int64_t k;
  const Packed<T>*a, *b;
  int64_t a_row, a_column, b_row;
  const T* rows;  // of B, where it lies
  int64_t rows_step;
  Packed<T>*keep_a, *keep;  // the panels that are made of A and of them
  Sum<T>* c;
  int64_t c_row;
  const Sum<T>* start;  // added to the product, unless null
  int64_t start_row;
  BFloat16* rounded;  // where sums go instead of to c, unless null
  int64_t rounded_row;
  Sum<T> alpha;
  int columns;  // written, of the tile's
  Lines ahead;  // of the B that is read next, one with every kFetchSteps steps of k
  Lines
      next_a;  // what the next tile multiplies, and on to A's end, if kFetchesTiles; of a packed A all of it
  Lines next_c;    // what it writes, and on to C's end
  bool c_is_near;  // fetched by the tile before
};

template <class T, bool Full, bool Starts, int R, int V>
[[gnu::always_inline]] inline void write_as(const MicroTile<T>& t, const Register<T> (&sum)[R][V]) {
  constexpr int L = kLanes<T>;
  const int64_t c_row = t.c_row, start_row = t.start_row;
  [[maybe_unused]] const int last = t.columns - (V - 1) * L;
  Sum<T>* c = t.c;
  [[maybe_unused]] const Sum<T>* start = t.start;
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i, c += c_row) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const bool whole = Full || v < V - 1;
      Register<T> x = sum[i][v];
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

#if defined(__AVX512BF16__)
// Two registers of sums become one that is stored at once, where the tile is full.
template <class T, bool Full, bool Starts, int R, int V>
[[gnu::always_inline]] inline void write_rounded(const MicroTile<T>& t, const Register<T> (&sum)[R][V]) {
  constexpr int L = kLanes<T>;
  [[maybe_unused]] const int last = t.columns - (V - 1) * L;
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    const Sum<T>* const start = Starts ? t.start + i * t.start_row : nullptr;
    BFloat16* const out = t.rounded + i * t.rounded_row;
    Register<T> x[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      x[v] = sum[i][v];
      if constexpr (Starts)
        x[v] +=
            Full || v < V - 1 ? load<T>(start + v * L) : native_load_part(start + v * L, last, Register<T>{});
    }
    if constexpr (Full && V == 2) {
      _mm512_storeu_si512(out, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(x[1], x[0])));
      continue;
    }
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      _mm256_mask_storeu_epi16(out + v * L, native_part_16(Full || v < V - 1 ? L : last),
                               reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x[v])));
  }
}
#endif

// By 1 as a rule, which costs nothing.
template <class T, int R, int V>
[[gnu::always_inline]] inline void scale(Sum<T> alpha, Register<T> (&sum)[R][V]) {
  if (alpha == 1) return;
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[i][v] *= alpha;
}

template <class T, int R, int V>
[[gnu::always_inline]] inline void write(const MicroTile<T>& t, Register<T> (&sum)[R][V]) {
  scale<T, R, V>(t.alpha, sum);
#if defined(__AVX512BF16__)
  if constexpr (GemmTypes<T>::group == 2)
    if (t.rounded) {
      if (t.columns == V * kLanes<T>)
        return t.start ? write_rounded<T, true, true>(t, sum) : write_rounded<T, true, false>(t, sum);
      return t.start ? write_rounded<T, false, true>(t, sum) : write_rounded<T, false, false>(t, sum);
    }
#endif
  if (t.columns == V * kLanes<T>)
    t.start ? write_as<T, true, true>(t, sum) : write_as<T, true, false>(t, sum);
  else
    t.start ? write_as<T, false, true>(t, sum) : write_as<T, false, false>(t, sum);
}

}  // namespace
}  // namespace retrograd::cpu::RG_ISA
