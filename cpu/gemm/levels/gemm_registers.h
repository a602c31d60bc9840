// The vector registers that matrix products of one instruction-set level are made of: sizes of the register
// tile, loads, and the multiplication. See cpu/gemm/levels/gemm_kernels.h.
//
// Products are added by fused multiply-add where the level has it (AVX2 and up), so sums differ in bits
// between levels; pairs of bfloat16 by vdpbf16ps, which takes subnormal numbers for zeros and rounds after
// each of the two products. Only plain loops and pointers: nothing of the standard library, no throw
// (tools/isa.bzl says why).
#pragma once

#include "cpu/gemm/levels/gemm_kernels.h"
#include "cpu/vec/vec.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

constexpr int kRows = kVectorBytes == 64 ? 14 : 6;
constexpr int kVectors = 2;

// Operands of type T as the tiles see them.
template <class T>
using Packed = typename GemmTypes<T>::Packed;
template <class T>
using Sum = typename GemmTypes<T>::Sum;
template <class T>
using Register = typename Format<Sum<T>>::Native;  // of sums, or the same number of packed elements
template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(Sum<T>));
// Fetching a B that is near costs up to 1.5 percent with AVX2, waiting for one that is not 4 to 5: in a training step
// weights have left the caches. With AVX-512 fetching always is best (x86-64 with 2 MB of second-level cache).
constexpr int64_t kNearB = kVectorBytes == 64 ? 0 : 64 << 10;
// Bytes from step to step of k, from which on reading columns of A where they lie is slow.
constexpr int64_t kFarStep = kVectorBytes == 64 ? 256 : 1024;
// Whether the first column panel packs such columns for the others. It takes 0.2 of a register tile, and packing them
// before 0.4; with AVX2 products as a whole take 6 percent longer so.
constexpr bool kKeepsColumns = kVectorBytes == 64;
// With 256 steps of k: 401 KB with AVX-512 (double: 803), else 221 KB (double: 344).
template <class T>
constexpr int kRowPanels = kVectorBytes < 64 && sizeof(Packed<T>) == 4 ? 36 : 28;
// 800 KB of C with AVX-512, which stay in 2 MB of second-level cache with as many rows: 256 x 50257 x 768 takes 6
// percent less time than with 48. Another number was not measured with AVX2.
constexpr int kColumnPanels = kVectorBytes == 64 ? 16 : 48;

template <class T>
[[gnu::always_inline]] inline Register<T> load(const void* p) {
  return *static_cast<const typename Format<Sum<T>>::Unaligned*>(p);
}
template <class T>
[[gnu::always_inline]] inline void store(void* p, Register<T> v) {
  *static_cast<typename Format<Sum<T>>::Unaligned*>(p) = v;
}

// One packed element in all lanes.
template <class T>
[[gnu::always_inline]] inline Register<T> spread(const Packed<T>* p) {
#if defined(__AVX512BF16__)
  if constexpr (GemmTypes<T>::group == 2) {
    int pair;  // at any even address, where A lies in place
    __builtin_memcpy(&pair, p, sizeof(pair));
    return _mm512_castsi512_ps(_mm512_set1_epi32(pair));
  } else
#endif
    return static_cast<Sum<T>>(*p) - Register<T>{};
}

#if defined(__AVX512BF16__)
// Pairs of 16 numbers each.
[[gnu::always_inline]] inline __m512i join(__m256i low, __m256i high) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(low), _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}
#endif

// Register v of a packed row, from B where it lies: `rows` is at the first row and column of it.
template <class T>
[[gnu::always_inline]] inline Register<T> pack_row(const T* rows, [[maybe_unused]] int64_t step, int v) {
#if defined(__AVX512BF16__)
  if constexpr (GemmTypes<T>::group == 2) {  // neighbours are the two rows of a pair
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + v * 16)),
                  high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + step + v * 16));
    return _mm512_castsi512_ps(join(low, high));
  } else
#endif
    return load<T>(rows + v * kLanes<T>);
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

}  // namespace
}  // namespace retrograd::cpu::RG_ISA
