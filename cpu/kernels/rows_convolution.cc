// Inner loops of convolutions for one instruction-set level: see cpu/kernels/convolution_rows.h.
// Only plain loops and pointers: nothing of the standard library, no throw (tools/isa.bzl says why).
//
// Runs are often shorter than a few registers (a line of a small image), so a copy ends with a block that
// overlaps the one before instead of a loop over single elements.
#include "cpu/kernels/convolution_rows.h"

#include "cpu/vec.h"

namespace retrograd::cpu::RG_ISA {
namespace {

template <int Bytes>
[[gnu::always_inline]] inline void copy_block(const char* from, char* to) {
  struct Block {
    char bytes[Bytes];
  };
  Block block;
  __builtin_memcpy(&block, from, Bytes);
  __builtin_memcpy(to, &block, Bytes);
}

// `bytes` of them, at least Bytes: whole blocks, and one that ends at the end.
template <int Bytes>
[[gnu::always_inline]] inline void copy_blocks(const char* from, char* to, int64_t bytes) {
  for (int64_t i = 0; i + Bytes < bytes; i += Bytes) copy_block<Bytes>(from + i, to + i);
  copy_block<Bytes>(from + bytes - Bytes, to + bytes - Bytes);
}

template <class T>
[[gnu::always_inline]] inline void copy(const T* x, T* out, int64_t n) {
  const char* from = reinterpret_cast<const char*>(x);
  char* to = reinterpret_cast<char*>(out);
  const int64_t bytes = n * static_cast<int64_t>(sizeof(T));
  if (bytes >= kVectorBytes) return copy_blocks<kVectorBytes>(from, to, bytes);
  if constexpr (kVectorBytes > 32)
    if (bytes >= 32) return copy_blocks<32>(from, to, bytes);
  if constexpr (kVectorBytes > 16)
    if (bytes >= 16) return copy_blocks<16>(from, to, bytes);
  if (bytes >= 8) return copy_blocks<8>(from, to, bytes);
  if (bytes >= 4) copy_block<4>(from, to);
}

template <class T>
[[gnu::always_inline]] inline void copy_steps(const T* from, int64_t stride, T* to, int64_t n) {
  if (stride == 1)
    copy(from, to, n);
  else if (stride == 2)
    for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
  else
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
}

// How many of 0, 1, ... < n have x + i * stride < bound.
inline int64_t count_below(int64_t x, int64_t stride, int64_t bound, int64_t n) {
  if (x >= bound) return 0;
  const int64_t count = (bound - x - 1) / stride + 1;
  return count < n ? count : n;
}

template <class T>
void patch(const T* channel, const int64_t* size, int64_t stride, const ConvolutionRun* runs,
           int64_t run_count, const int64_t* offset, T* row) {
  const int64_t shift = (offset[0] * size[1] + offset[1]) * size[2] + offset[2];
  for (const ConvolutionRun* run = runs; run < runs + run_count; ++run) {
    const int64_t z = run->at[0] + offset[0], y = run->at[1] + offset[1], x = run->at[2] + offset[2];
    T* to = row + run->column;
    int64_t first = 0, end = 0;
    if (z >= 0 && z < size[0] && y >= 0 && y < size[1]) {
      end = run->count;
      if (x < 0) first = count_below(x, stride, 0, end);
      if (x + (end - 1) * stride >= size[2]) end = count_below(x, stride, size[2], end);
    }
    for (int64_t i = 0; i < first; ++i) to[i] = 0;
    if (first < end)
      copy_steps(channel + (run->from + shift + first * stride), stride, to + first, end - first);
    for (int64_t i = first < end ? end : first; i < run->count; ++i) to[i] = 0;
  }
}

template <class T>
void store(const T* row, const ConvolutionRun* runs, int64_t run_count, T bias, int64_t step, T* out) {
  for (const ConvolutionRun* run = runs; run < runs + run_count; ++run) {
    const T* from = row + run->column;
    T* to = out + run->to;
    const int64_t n = run->count;
    if (step == 1)
      for (int64_t i = 0; i < n; ++i) to[i] = from[i] + bias;
    else
      for (int64_t i = 0; i < n; ++i) to[i * step] = from[i] + bias;
  }
}

// V registers of results at once.
template <class T, int V>
[[gnu::always_inline]] inline void combine_block(const T* x, const int64_t* offset, const T* weight,
                                                 int64_t count, T start, T* out) {
  Vec<T> sum[V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) sum[v] = Vec<T>(start);
  for (int64_t t = 0; t < count; ++t) {
    const T* from = x + offset[t];
    const Vec<T> w(weight[t]);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[v] += w * Vec<T>::load(from + v * Vec<T>::size);
  }
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) sum[v].store(out + v * Vec<T>::size);
}

template <class T>
void combine(const T* x, const int64_t* offset, const T* weight, int64_t count, T start, T* out, int64_t n) {
  constexpr int64_t L = Vec<T>::size;
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) combine_block<T, 4>(x + i, offset, weight, count, start, out + i);
  for (; i + L <= n; i += L) combine_block<T, 1>(x + i, offset, weight, count, start, out + i);
  if (i == n) return;
  T last[L];
  combine_block<T, 1>(x + i, offset, weight, count, start, last);
  for (int64_t j = i; j < n; ++j) out[j] = last[j - i];
}

template <class T>
[[gnu::always_inline]] inline Vec<T> lane_numbers() {
  T numbers[Vec<T>::size];
  for (int i = 0; i < Vec<T>::size; ++i) numbers[i] = static_cast<T>(i);
  return Vec<T>::load(numbers);
}

// R places of the kernel at once, their sums in registers.
template <class T, int R>
void correlate_block(const T* x, const int64_t* offset, const T* g, int64_t n, T* lanes) {
  Vec<T> sum[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sum[r] = Vec<T>::load(lanes + r * kConvolutionPad);
  int64_t i = 0;
  for (; i + Vec<T>::size <= n; i += Vec<T>::size) {
    const Vec<T> left = Vec<T>::load(g + i);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum[r] += left * Vec<T>::load(x + offset[r] + i);
  }
  if (i < n) {
    const Vec<T> left = Vec<T>::load(g + i);
    const Mask<T> counts = lane_numbers<T>() < Vec<T>(static_cast<T>(n - i));
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
      sum[r] += select(counts, left * Vec<T>::load(x + offset[r] + i), Vec<T>(T(0)));
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sum[r].store(lanes + r * kConvolutionPad);
}

template <class T>
void correlate(const T* x, const int64_t* offset, int64_t count, const T* g, int64_t n, T* lanes) {
  int64_t t = 0;
  for (; t + 8 <= count; t += 8) correlate_block<T, 8>(x, offset + t, g, n, lanes + t * kConvolutionPad);
  for (; t + 3 <= count; t += 3) correlate_block<T, 3>(x, offset + t, g, n, lanes + t * kConvolutionPad);
  for (; t < count; ++t) correlate_block<T, 1>(x, offset + t, g, n, lanes + t * kConvolutionPad);
}

template <class T>
constexpr ConvolutionCopies<T> copies{patch<T>, store<T>};
template <class T>
constexpr ConvolutionTaps<T> taps{combine<T>, correlate<T>};

}  // namespace

template <class T>
const ConvolutionCopies<T>& convolution_copies() {
  return copies<T>;
}
template const ConvolutionCopies<float>& convolution_copies<float>();
template const ConvolutionCopies<double>& convolution_copies<double>();
template const ConvolutionCopies<int64_t>& convolution_copies<int64_t>();

template <class T>
const ConvolutionTaps<T>& convolution_taps() {
  return taps<T>;
}
template const ConvolutionTaps<float>& convolution_taps<float>();
template const ConvolutionTaps<double>& convolution_taps<double>();

}  // namespace retrograd::cpu::RG_ISA
