// Packing of matrix products, for the kernel files of one instruction-set level: see
// cpu/gemm/levels/gemm_kernels.h. Pointers to operands are to bytes, since a pair of bfloat16 may begin at
// any even address. P is the packed element, of 4 or 8 bytes.
//
// Elements that follow each other along k are turned by squares: of 16 vector registers with AVX-512 and
// elements of 4 bytes, of 8 with AVX2, else of 16-byte registers. Neighbours across a panel are copied,
// others read one by one.
#pragma once

#include "cpu/gemm/levels/gemm_registers.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

constexpr int64_t kStepsAtOnce = 16;  // of k, where neighbours lie across panels

template <int Bytes>
struct Quad;
template <>
struct Quad<4> {
  static constexpr int size = 4;
  typedef float V __attribute__((vector_size(16), aligned(1), may_alias));
  static void turn(const char* x, int64_t across, void* out, int64_t width) {
    const V a = *reinterpret_cast<const V*>(x), b = *reinterpret_cast<const V*>(x + across);
    const V c = *reinterpret_cast<const V*>(x + 2 * across), d = *reinterpret_cast<const V*>(x + 3 * across);
    const V ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const V ef = __builtin_shufflevector(a, b, 2, 6, 3, 7), gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    float* o = static_cast<float*>(out);
    *reinterpret_cast<V*>(o) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *reinterpret_cast<V*>(o + width) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *reinterpret_cast<V*>(o + 2 * width) = __builtin_shufflevector(ef, gh, 0, 1, 4, 5);
    *reinterpret_cast<V*>(o + 3 * width) = __builtin_shufflevector(ef, gh, 2, 3, 6, 7);
  }
};
template <>
struct Quad<8> {
  static constexpr int size = 2;
  typedef double V __attribute__((vector_size(16), aligned(1), may_alias));
  static void turn(const char* x, int64_t across, void* out, int64_t width) {
    const V a = *reinterpret_cast<const V*>(x), b = *reinterpret_cast<const V*>(x + across);
    double* o = static_cast<double*>(out);
    *reinterpret_cast<V*>(o) = __builtin_shufflevector(a, b, 0, 2);
    *reinterpret_cast<V*>(o + width) = __builtin_shufflevector(a, b, 1, 3);
  }
};

// Sixteen steps of `count` rows turned, with zeros for the other rows, at most 16 in all: four squares of 4 x
// 4 elements in each register, then the squares among registers.
#if defined(__AVX512F__)
template <int Rows>
[[gnu::always_inline]] inline void turn_sixteen(const char* x, int64_t across, int64_t count, void* out,
                                                int64_t width) {
  __m512 rows[16], pairs[16], quads[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    rows[i] = i < Rows && i < count ? _mm512_loadu_ps(x + i * across) : _mm512_setzero_ps();
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  const auto low = [](__m512 a, __m512 b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  const auto high = [](__m512 a, __m512 b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    quads[i] = low(pairs[i], pairs[i + 2]);
    quads[i + 1] = high(pairs[i], pairs[i + 2]);
    quads[i + 2] = low(pairs[i + 1], pairs[i + 3]);
    quads[i + 3] = high(pairs[i + 1], pairs[i + 3]);
  }
  const auto put = [&](int l, __m512 v) {
    _mm512_mask_storeu_ps(static_cast<float*>(out) + l * width, static_cast<__mmask16>((1u << Rows) - 1), v);
  };
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512 a = _mm512_shuffle_f32x4(quads[j], quads[4 + j], 0x44),
                 b = _mm512_shuffle_f32x4(quads[8 + j], quads[12 + j], 0x44),
                 c = _mm512_shuffle_f32x4(quads[j], quads[4 + j], 0xee),
                 d = _mm512_shuffle_f32x4(quads[8 + j], quads[12 + j], 0xee);
    put(j, _mm512_shuffle_f32x4(a, b, 0x88));
    put(4 + j, _mm512_shuffle_f32x4(a, b, 0xdd));
    put(8 + j, _mm512_shuffle_f32x4(c, d, 0x88));
    put(12 + j, _mm512_shuffle_f32x4(c, d, 0xdd));
  }
}
#elif defined(__AVX2__)
// Eight steps of `Rows` rows turned: a register has four steps of row i and of row i + 4. Each step is written
// with eight elements; what those beyond `Rows` overwrite has to be written later.
template <int Rows>
[[gnu::always_inline]] inline void turn_eight(const char* x, int64_t across, float* out, int64_t width) {
  const auto row = [&](int i, int64_t step) {
    return _mm_loadu_ps(reinterpret_cast<const float*>(x + (i < Rows ? i : 0) * across) + step);
  };
  for (int64_t l = 0; l < 8; l += 4) {
    __m256 rows[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) rows[i] = _mm256_set_m128(row(i + 4, l), row(i, l));
    const __m256 a = _mm256_unpacklo_ps(rows[0], rows[1]), b = _mm256_unpackhi_ps(rows[0], rows[1]),
                 c = _mm256_unpacklo_ps(rows[2], rows[3]), d = _mm256_unpackhi_ps(rows[2], rows[3]);
    float* const to = out + l * width;
    _mm256_storeu_ps(to, _mm256_shuffle_ps(a, c, 0x44));
    _mm256_storeu_ps(to + width, _mm256_shuffle_ps(a, c, 0xee));
    _mm256_storeu_ps(to + 2 * width, _mm256_shuffle_ps(b, d, 0x44));
    _mm256_storeu_ps(to + 3 * width, _mm256_shuffle_ps(b, d, 0xee));
  }
}
#endif

template <class P>
[[gnu::always_inline]] inline P element(const char* x) {
  P value;
  __builtin_memcpy(&value, x, sizeof(P));
  return value;
}

// `count` rows that are `across` bytes apart, k elements of each in sequence. Width is the panel's
// where it is known and full, else 0.
template <class P, int Width>
[[gnu::always_inline]] inline void pack_rows(const char* x, int64_t across, int64_t given_count,
                                             int64_t given_width, int64_t k, P* out) {
  constexpr int64_t Q = Quad<sizeof(P)>::size, bytes = sizeof(P);
  const int64_t count = Width ? Width : given_count, width = Width ? Width : given_width;
  int64_t l = 0;
  for (; l + Q <= k; l += Q, out += Q * width) {
    int64_t i = 0;
    for (; i + Q <= count; i += Q) Quad<bytes>::turn(x + i * across + l * bytes, across, out + i, width);
    for (int64_t q = 0; q < Q; ++q) {
      for (int64_t r = i; r < count; ++r) out[q * width + r] = element<P>(x + r * across + (l + q) * bytes);
      for (int64_t r = count; r < width; ++r) out[q * width + r] = 0;
    }
  }
  for (; l < k; ++l, out += width)
    for (int64_t i = 0; i < width; ++i) out[i] = i < count ? element<P>(x + i * across + l * bytes) : P(0);
}

// A panel of Width rows, `count` of which are there.
template <class P, int Width>
void pack_along(const char* x, int64_t across, int64_t count, int64_t k, P* out) {
  [[maybe_unused]] constexpr int64_t bytes = sizeof(P);
#if defined(__AVX512F__)
  if constexpr (sizeof(P) == 4) {
    const int64_t whole = k / 16 * 16;
    for (int64_t l = 0; l < whole; l += 16)
      turn_sixteen<(Width < 16 ? Width : 16)>(x + l * bytes, across, count, out + l * Width, Width);
    if constexpr (Width > 16)
      for (int64_t l = 0; l < whole; l += 16)
        turn_sixteen<Width - 16>(x + 16 * across + l * bytes, across, count - 16, out + l * Width + 16,
                                 Width);
    x += whole * bytes;
    out += whole * Width;
    k -= whole;
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(P) == 4)
    if (count == Width && k > 0) {
      const int64_t whole = (Width % 8 ? k - 1 : k) / 8 * 8;  // the last step is not written beyond
      for (int64_t l = 0; l < whole; l += 16)
#pragma GCC unroll 2
        for (int i = 0; i < Width; i += 8)
          for (int64_t at = l; at < whole && at < l + 16; at += 8)
            turn_eight<(Width % 8 ? Width : 8)>(x + i * across + at * bytes, across, out + at * Width + i,
                                                Width);
      x += whole * bytes;
      out += whole * Width;
      k -= whole;
    }
#endif
  if (count == Width)
    pack_rows<P, Width>(x, across, Width, Width, k, out);
  else
    pack_rows<P, 0>(x, across, count, Width, k, out);
}

}  // namespace
}  // namespace retrograd::cpu::RG_ISA
