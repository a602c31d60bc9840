// The few machine instructions that GCC's vector extensions do not reach, once per vector width.
//
// A level has three native types of kVectorBytes: floats, doubles and the integers that masks are made of.
// min and max are the instructions: the second operand where either is NaN. A part is the first `count`
// lanes; memory beyond them is not touched. native_stream stores past the caches, aligned. kRounds: the level
// has native_nearest, native_floor and native_trunc, which round to an integer, ties to even, down and
// towards 0; kScales: native_scale, y * 2^n for a whole n, rounded once. The masked AVX-512 forms stand in
// for the plain ones, about which GCC 12 warns. Only cpu/vec/vec.h includes this file.
#pragma once

#include <immintrin.h>

#include <cstdint>

#ifndef RG_ISA
#error "RG_ISA must name the instruction set level: baseline, avx2 or avx512"
#endif

namespace retrograd::inline v0::cpu::RG_ISA {

#if defined(__AVX512F__)

#if !defined(__AVX512BW__) || !defined(__AVX512DQ__)
#error "the avx512 level is x86-64-v4"
#endif

inline constexpr int kVectorBytes = 64;

inline __m512 native_fused(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
inline __m512 native_sqrt(__m512 x) { return _mm512_maskz_sqrt_ps(0xffff, x); }
inline __m512d native_fused(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }
inline __m512d native_sqrt(__m512d x) { return _mm512_maskz_sqrt_pd(0xff, x); }
inline __m512 native_min(__m512 a, __m512 b) { return _mm512_maskz_min_ps(0xffff, a, b); }
inline __m512d native_min(__m512d a, __m512d b) { return _mm512_maskz_min_pd(0xff, a, b); }
inline __m512 native_max(__m512 a, __m512 b) { return _mm512_maskz_max_ps(0xffff, a, b); }
inline __m512d native_max(__m512d a, __m512d b) { return _mm512_maskz_max_pd(0xff, a, b); }
inline constexpr bool kRounds = true, kScales = true;
inline __m512 native_nearest(__m512 x) { return _mm512_maskz_roundscale_ps(0xffff, x, 8); }
inline __m512d native_nearest(__m512d x) { return _mm512_maskz_roundscale_pd(0xff, x, 8); }
inline __m512 native_floor(__m512 x) { return _mm512_maskz_roundscale_ps(0xffff, x, 9); }
inline __m512d native_floor(__m512d x) { return _mm512_maskz_roundscale_pd(0xff, x, 9); }
inline __m512 native_trunc(__m512 x) { return _mm512_maskz_roundscale_ps(0xffff, x, 11); }
inline __m512d native_trunc(__m512d x) { return _mm512_maskz_roundscale_pd(0xff, x, 11); }
inline __m512 native_scale(__m512 y, __m512 n) { return _mm512_maskz_scalef_ps(0xffff, y, n); }
inline __m512d native_scale(__m512d y, __m512d n) { return _mm512_maskz_scalef_pd(0xff, y, n); }
inline void native_stream(float* p, __m512 v) { _mm512_stream_ps(p, v); }
inline void native_stream(double* p, __m512d v) { _mm512_stream_pd(p, v); }
inline bool native_any(__m512i mask) { return _mm512_movepi8_mask(mask) != 0; }
inline __mmask16 native_part_16(int64_t count) {
  return count >= 16 ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1u << count) - 1);
}
inline __mmask8 native_part_8(int64_t count) {
  return count >= 8 ? static_cast<__mmask8>(0xff) : static_cast<__mmask8>((1u << count) - 1);
}
inline __m512 native_load_part(const float* p, int64_t count, __m512 fill) {
  return _mm512_mask_loadu_ps(fill, native_part_16(count), p);
}
inline __m512d native_load_part(const double* p, int64_t count, __m512d fill) {
  return _mm512_mask_loadu_pd(fill, native_part_8(count), p);
}
inline void native_store_part(float* p, int64_t count, __m512 v) {
  _mm512_mask_storeu_ps(p, native_part_16(count), v);
}
inline void native_store_part(double* p, int64_t count, __m512d v) {
  _mm512_mask_storeu_pd(p, native_part_8(count), v);
}
inline __m512 native_keep_part(__m512 v, int64_t count) {
  return _mm512_maskz_mov_ps(native_part_16(count), v);
}
inline __m512d native_keep_part(__m512d v, int64_t count) {
  return _mm512_maskz_mov_pd(native_part_8(count), v);
}
inline __m512d native_low_half(__m512 x) {
  return _mm512_maskz_cvtps_pd(0xff, _mm512_maskz_extractf32x8_ps(0xff, x, 0));
}
inline __m512d native_high_half(__m512 x) {
  return _mm512_maskz_cvtps_pd(0xff, _mm512_maskz_extractf32x8_ps(0xff, x, 1));
}
inline __m512d native_load_wide(const float* p) { return _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(p)); }
inline __m512 native_join(__m512d low, __m512d high) {
  const __m256 high_half = _mm512_maskz_cvtpd_ps(0xff, high);
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_maskz_cvtpd_ps(0xff, low)), high_half, 1);
}

#elif defined(__AVX2__)

inline constexpr int kVectorBytes = 32;
inline constexpr bool kRounds = true, kScales = false;

inline __m256 native_fused(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
inline __m256 native_sqrt(__m256 x) { return _mm256_sqrt_ps(x); }
inline __m256d native_fused(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
inline __m256d native_sqrt(__m256d x) { return _mm256_sqrt_pd(x); }
inline __m256 native_min(__m256 a, __m256 b) { return _mm256_min_ps(a, b); }
inline __m256d native_min(__m256d a, __m256d b) { return _mm256_min_pd(a, b); }
inline __m256 native_max(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
inline __m256d native_max(__m256d a, __m256d b) { return _mm256_max_pd(a, b); }
inline __m256 native_nearest(__m256 x) { return _mm256_round_ps(x, 8); }
inline __m256d native_nearest(__m256d x) { return _mm256_round_pd(x, 8); }
inline __m256 native_floor(__m256 x) { return _mm256_round_ps(x, 9); }
inline __m256d native_floor(__m256d x) { return _mm256_round_pd(x, 9); }
inline __m256 native_trunc(__m256 x) { return _mm256_round_ps(x, 11); }
inline __m256d native_trunc(__m256d x) { return _mm256_round_pd(x, 11); }
inline void native_stream(float* p, __m256 v) { _mm256_stream_ps(p, v); }
inline void native_stream(double* p, __m256d v) { _mm256_stream_pd(p, v); }
inline bool native_any(__m256i mask) { return _mm256_movemask_epi8(mask) != 0; }
inline __m256i native_part_4(int64_t count) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}
inline __m256i native_part_8(int64_t count) {
  const int lanes = count > 8 ? 8 : static_cast<int>(count);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline __m256 native_load_part(const float* p, int64_t count, __m256 fill) {
  const __m256i part = native_part_8(count);
  return _mm256_blendv_ps(fill, _mm256_maskload_ps(p, part), _mm256_castsi256_ps(part));
}
inline __m256d native_load_part(const double* p, int64_t count, __m256d fill) {
  const __m256i part = native_part_4(count);
  return _mm256_blendv_pd(fill, _mm256_maskload_pd(p, part), _mm256_castsi256_pd(part));
}
inline void native_store_part(float* p, int64_t count, __m256 v) {
  _mm256_maskstore_ps(p, native_part_8(count), v);
}
inline void native_store_part(double* p, int64_t count, __m256d v) {
  _mm256_maskstore_pd(p, native_part_4(count), v);
}
inline __m256 native_keep_part(__m256 v, int64_t count) {
  return _mm256_and_ps(v, _mm256_castsi256_ps(native_part_8(count)));
}
inline __m256d native_keep_part(__m256d v, int64_t count) {
  return _mm256_and_pd(v, _mm256_castsi256_pd(native_part_4(count)));
}
inline __m256d native_low_half(__m256 x) { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
inline __m256d native_high_half(__m256 x) { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }
inline __m256d native_load_wide(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
inline __m256 native_join(__m256d low, __m256d high) {
  return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}

#else

inline constexpr int kVectorBytes = 16;
inline constexpr bool kRounds = false, kScales = false;

inline __m128 native_fused(__m128 a, __m128 b, __m128 c) { return a * b + c; }
inline __m128 native_sqrt(__m128 x) { return _mm_sqrt_ps(x); }
inline __m128d native_fused(__m128d a, __m128d b, __m128d c) { return a * b + c; }
inline __m128d native_sqrt(__m128d x) { return _mm_sqrt_pd(x); }
inline __m128 native_min(__m128 a, __m128 b) { return _mm_min_ps(a, b); }
inline __m128d native_min(__m128d a, __m128d b) { return _mm_min_pd(a, b); }
inline __m128 native_max(__m128 a, __m128 b) { return _mm_max_ps(a, b); }
inline __m128d native_max(__m128d a, __m128d b) { return _mm_max_pd(a, b); }
inline void native_stream(float* p, __m128 v) { _mm_stream_ps(p, v); }
inline void native_stream(double* p, __m128d v) { _mm_stream_pd(p, v); }
inline bool native_any(__m128i mask) { return _mm_movemask_epi8(mask) != 0; }
template <class T, class V>
V native_load_part(const T* p, int64_t count, V v) {
  for (int i = 0; i < static_cast<int>(sizeof(V) / sizeof(T)); ++i)
    if (i < count) v[i] = p[i];
  return v;
}
template <class T, class V>
void native_store_part(T* p, int64_t count, V v) {
  for (int i = 0; i < static_cast<int>(sizeof(V) / sizeof(T)); ++i)
    if (i < count) p[i] = v[i];
}
template <class V>
V native_keep_part(V v, int64_t count) {
  for (int i = 0; i < static_cast<int>(sizeof(V) / sizeof(v[0])); ++i)
    if (i >= count) v[i] = 0;
  return v;
}
inline __m128d native_low_half(__m128 x) { return _mm_cvtps_pd(x); }
inline __m128d native_high_half(__m128 x) { return _mm_cvtps_pd(_mm_movehl_ps(x, x)); }
inline __m128d native_load_wide(const float* p) { return _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadu_si64(p))); }
inline __m128 native_join(__m128d low, __m128d high) {
  return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}

#endif

}  // namespace retrograd::cpu::RG_ISA
