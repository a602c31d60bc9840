// Inner loops of convolutions for one instruction-set level: see cpu/kernels/levels/convolution_rows.h.
// Only plain loops and pointers: nothing of the standard library, no throw (tools/isa.bzl says why).
//
// Runs are often shorter than a few registers (a line of a small image), so a copy ends with a block that
// overlaps the one before instead of a loop over single elements.
#include "cpu/kernels/levels/convolution_rows.h"

#include "cpu/vec/vec.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

template <int Bytes>
struct Block {
  char bytes[Bytes];
};

struct Source {
  const char* from;
  template <int Bytes>
  [[gnu::always_inline]] Block<Bytes> read(int64_t at) const {
    Block<Bytes> block;
    __builtin_memcpy(&block, from + at, Bytes);
    return block;
  }
};
struct Zeros {
  template <int Bytes>
  [[gnu::always_inline]] Block<Bytes> read(int64_t) const {
    return {};
  }
};

template <int Bytes, class From>
[[gnu::always_inline]] inline void put(const From& from, int64_t at, char* to) {
  const Block<Bytes> block = from.template read<Bytes>(at);
  __builtin_memcpy(to + at, &block, Bytes);
}

// `bytes` of them, at least Bytes: whole blocks, and one that ends at the end.
template <int Bytes, class From>
[[gnu::always_inline]] inline void put_blocks(const From& from, char* to, int64_t bytes) {
  for (int64_t i = 0; i + Bytes < bytes; i += Bytes) put<Bytes>(from, i, to);
  put<Bytes>(from, bytes - Bytes, to);
}

template <class From, class T>
[[gnu::always_inline]] inline void put_all(const From& from, T* out, int64_t n) {
  char* to = reinterpret_cast<char*>(out);
  const int64_t bytes = n * static_cast<int64_t>(sizeof(T));
  if (bytes >= kVectorBytes) return put_blocks<kVectorBytes>(from, to, bytes);
  if constexpr (kVectorBytes > 32)
    if (bytes >= 32) return put_blocks<32>(from, to, bytes);
  if constexpr (kVectorBytes > 16)
    if (bytes >= 16) return put_blocks<16>(from, to, bytes);
  if (bytes >= 8) return put_blocks<8>(from, to, bytes);
  if (bytes >= 4) put<4>(from, 0, to);
}

template <class T>
[[gnu::always_inline]] inline void copy(const T* x, T* out, int64_t n) {
  put_all(Source{reinterpret_cast<const char*>(x)}, out, n);
}

template <class T>
[[gnu::always_inline]] inline void clear(T* out, int64_t n) {
  if (n > 0) put_all(Zeros(), out, n);
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
[[gnu::always_inline]] inline int64_t count_below(int64_t x, int64_t stride, int64_t bound, int64_t n) {
  if (x >= bound) return 0;
  const int64_t count = stride == 1 ? bound - x : (bound - x - 1) / stride + 1;
  return count < n ? count : n;
}

template <class T>
void patch(const T* channel, const int64_t* size, int64_t stride, const ConvolutionRun* runs,
           int64_t run_count, const int64_t* offset, T* row) {
  const int64_t shift = (offset[0] * size[1] + offset[1]) * size[2] + offset[2], width = size[2];
  for (const ConvolutionRun* run = runs; run < runs + run_count; ++run) {
    const int64_t z = run->at[0] + offset[0], y = run->at[1] + offset[1], x = run->at[2] + offset[2],
                  n = run->count;
    T* to = row + run->column;
    if (z < 0 || z >= size[0] || y < 0 || y >= size[1]) {
      clear(to, n);
      continue;
    }
    const int64_t first = count_below(x, stride, 0, n), end = count_below(x, stride, width, n);
    clear(to, first);
    if (first < end)
      copy_steps(channel + (run->from + shift + first * stride), stride, to + first, end - first);
    clear(to + end, n - end);
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

// The last results of a line, at most V registers of them.
template <class T, int V = 4>
void combine_rest(const T* x, const int64_t* offset, const T* weight, int64_t count, T start, T* out,
                  int64_t n) {
  constexpr int64_t L = Vec<T>::size;
  if constexpr (V > 1)
    if (n <= (V - 1) * L) return combine_rest<T, V - 1>(x, offset, weight, count, start, out, n);
  if (n == V * L) return combine_block<T, V>(x, offset, weight, count, start, out);
  T all[V * L];
  combine_block<T, V>(x, offset, weight, count, start, all);
  copy(all, out, n);
}

template <class T>
void combine(const T* x, const int64_t* offset, const T* weight, int64_t count, T start, T* out, int64_t n) {
  constexpr int64_t B = 4 * Vec<T>::size;
  int64_t i = 0;
  for (; i + B < n; i += B) combine_block<T, 4>(x + i, offset, weight, count, start, out + i);
  if (i < n) combine_rest<T>(x + i, offset, weight, count, start, out + i, n - i);
}

template <class T>
[[gnu::always_inline]] inline Vec<T> lane_numbers() {
  T numbers[Vec<T>::size];
  for (int i = 0; i < Vec<T>::size; ++i) numbers[i] = static_cast<T>(i);
  return Vec<T>::load(numbers);
}

// R places of the kernel at once, their sums in registers.
template <class T, int R>
void correlate_block(const CorrelationLines<T>& c, const int64_t* offset, T* sums) {
  constexpr int64_t L = Vec<T>::size;
  const int64_t full = c.n / L * L;
  const Mask<T> counts = lane_numbers<T>() < Vec<T>(static_cast<T>(c.n - full));
  Vec<T> sum[R];
#pragma GCC unroll 9
  for (int r = 0; r < R; ++r) sum[r] = Vec<T>(T(0));
  for (int64_t line = 0; line < c.lines; ++line) {
    const T *g = c.g + line * c.g_step, *x = c.x + line * c.x_step;
    for (int64_t i = 0; i < full; i += L) {
      const Vec<T> left = Vec<T>::load(g + i);
#pragma GCC unroll 9
      for (int r = 0; r < R; ++r) sum[r] += left * Vec<T>::load(x + offset[r] + i);
    }
    if (full == c.n) continue;
    const Vec<T> left = Vec<T>::load(g + full);
#pragma GCC unroll 9
    for (int r = 0; r < R; ++r)
      sum[r] += select(counts, left * Vec<T>::load(x + offset[r] + full), Vec<T>(T(0)));
  }
#pragma GCC unroll 9
  for (int r = 0; r < R; ++r) sums[r] += reduce_add(sum[r]);
}

template <class T>
void correlate(const CorrelationLines<T>& c, const int64_t* offset, int64_t count, T* sums) {
  int64_t t = 0;
  for (; t + 9 <= count; t += 9) correlate_block<T, 9>(c, offset + t, sums + t);
  for (; t + 3 <= count; t += 3) correlate_block<T, 3>(c, offset + t, sums + t);
  for (; t < count; ++t) correlate_block<T, 1>(c, offset + t, sums + t);
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
