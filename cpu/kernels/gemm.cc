// Register tiles of matrix products for one instruction-set level: see cpu/kernels/gemm_kernels.h.
// Products are added by fused multiply-add where the level has it (AVX2 and up), so sums differ in bits
// between levels. Only plain loops and pointers: nothing of the standard library, no throw (tools/isa.bzl
// says why).
//
// The tile of micro() keeps R x V vector registers of sums, V of B and one of A: 12 + 3 of 16 registers, 28 +
// 3 of 32 with AVX-512. Each sum runs over k in order, so an element's bits depend on k and on how the caller
// cuts k, not on its place.
#include "cpu/kernels/gemm_kernels.h"

#include "cpu/vec.h"

namespace retrograd::cpu::RG_ISA {
namespace {

constexpr int kRows = kVectorBytes == 64 ? 14 : 6;
constexpr int kVectors = 2;

template <class T>
using Native = typename Format<T>::Native;
template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
[[gnu::always_inline]] inline Native<T> load(const T* p) {
  return *reinterpret_cast<const typename Format<T>::Unaligned*>(p);
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, Native<T> v) {
  *reinterpret_cast<typename Format<T>::Unaligned*>(p) = v;
}

// a * b + c, rounded once.
#if defined(__AVX512F__)
inline __m512 fused(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
inline __m512d fused(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }
#elif defined(__FMA__)
inline __m256 fused(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
inline __m256d fused(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
#else
inline __m128 fused(__m128 a, __m128 b, __m128 c) { return a * b + c; }  // the baseline has none
inline __m128d fused(__m128d a, __m128d b, __m128d c) { return a * b + c; }
#endif

template <class T>
struct MicroTile {
  int64_t k;
  const T *a, *b;
  int64_t a_row, a_column, b_row;
  T* c;
  int64_t c_row;
  T alpha;
  bool accumulate;
  int columns;  // written, of the tile's
};

template <class T, int R, int V>
[[gnu::always_inline]] inline void write(const MicroTile<T>& t, const Native<T> (&sum)[R][V]) {
  constexpr int L = kLanes<T>;
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    T* c = t.c + i * t.c_row;
    if (t.columns == V * L) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v)
        store<T>(c + v * L, t.accumulate ? load(c + v * L) + sum[i][v] * t.alpha : sum[i][v] * t.alpha);
    } else {
      T row[V * L];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) store<T>(row + v * L, sum[i][v] * t.alpha);
      for (int j = 0; j < t.columns; ++j) c[j] = t.accumulate ? c[j] + row[j] : row[j];
    }
  }
}

template <class T, int R, int V>
void micro(const MicroTile<T>& t) {
  Native<T> sum[R][V] = {};
  const T *a = t.a, *b = t.b;
  const int64_t a_row = t.a_row, a_column = t.a_column, b_row = t.b_row;
  for (int64_t l = t.k; l > 0; --l) {
    Native<T> right[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) right[v] = load(b + v * kLanes<T>);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const Native<T> left = a[i * a_row] - Native<T>{};
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][v] = fused(left, right[v], sum[i][v]);
    }
    a += a_column;
    b += b_row;
  }
  write<T, R, V>(t, sum);
}

template <class T, int R = kRows>
void micro_rows(const MicroTile<T>& t, int64_t rows) {
  if (rows == R) return t.columns > kLanes<T> ? micro<T, R, kVectors>(t) : micro<T, R, 1>(t);
  if constexpr (R > 1) micro_rows<T, R - 1>(t, rows);
}

template <class T>
void block(const GemmBlock<T>& x) {
  constexpr int columns = kVectors * kLanes<T>;
  for (int64_t j = 0; j < x.n; j += columns) {
    const bool last = x.n - j < columns;
    MicroTile<T> t{x.k,
                   nullptr,
                   last ? x.b_last : x.b + j / columns * x.b_panel,
                   x.a_row,
                   x.a_column,
                   last ? x.b_last_row : x.b_row,
                   nullptr,
                   x.c_row,
                   x.alpha,
                   x.accumulate,
                   last ? static_cast<int>(x.n - j) : columns};
    for (int64_t i = 0; i < x.m; i += kRows) {
      t.a = x.a + i / kRows * x.a_panel;
      t.c = x.c + i * x.c_row + j;
      micro_rows<T>(t, x.m - i < kRows ? x.m - i : kRows);
    }
  }
}

// Rows that lie behind each other along k are turned by squares of 16-byte registers, elsewhere element by
// element.
template <class T>
struct Quad;
template <>
struct Quad<float> {
  static constexpr int size = 4;
  typedef float V __attribute__((vector_size(16), aligned(4), may_alias));
  static void turn(const float* x, int64_t across, float* out, int64_t width) {
    const V a = *reinterpret_cast<const V*>(x), b = *reinterpret_cast<const V*>(x + across);
    const V c = *reinterpret_cast<const V*>(x + 2 * across), d = *reinterpret_cast<const V*>(x + 3 * across);
    const V ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const V ef = __builtin_shufflevector(a, b, 2, 6, 3, 7), gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *reinterpret_cast<V*>(out) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *reinterpret_cast<V*>(out + width) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *reinterpret_cast<V*>(out + 2 * width) = __builtin_shufflevector(ef, gh, 0, 1, 4, 5);
    *reinterpret_cast<V*>(out + 3 * width) = __builtin_shufflevector(ef, gh, 2, 3, 6, 7);
  }
};
template <>
struct Quad<double> {
  static constexpr int size = 2;
  typedef double V __attribute__((vector_size(16), aligned(8), may_alias));
  static void turn(const double* x, int64_t across, double* out, int64_t width) {
    const V a = *reinterpret_cast<const V*>(x), b = *reinterpret_cast<const V*>(x + across);
    *reinterpret_cast<V*>(out) = __builtin_shufflevector(a, b, 0, 2);
    *reinterpret_cast<V*>(out + width) = __builtin_shufflevector(a, b, 1, 3);
  }
};

template <class T, int Width>
void pack_along(const T* x, int64_t across, int64_t k, T* out) {
  constexpr int Q = Quad<T>::size;
  int64_t l = 0;
  for (; l + Q <= k; l += Q, out += Q * Width) {
    for (int i = 0; i + Q <= Width; i += Q) Quad<T>::turn(x + i * across + l, across, out + i, Width);
    for (int i = Width / Q * Q; i < Width; ++i)
      for (int q = 0; q < Q; ++q) out[q * Width + i] = x[i * across + l + q];
  }
  for (; l < k; ++l, out += Width)
    for (int i = 0; i < Width; ++i) out[i] = x[i * across + l];
}

template <class T, int Width>
void pack_across(const T* x, int64_t along, int64_t k, T* out) {
  for (int64_t l = 0; l < k; ++l, out += Width)
#pragma GCC unroll 32
    for (int i = 0; i < Width; ++i) out[i] = x[i + l * along];
}

// The same for fewer rows than the panel has; the others are zeros.
template <class T>
void pack_few(const T* x, int64_t across, int64_t count, int64_t width, int64_t k, T* out) {
  constexpr int64_t Q = Quad<T>::size;
  int64_t l = 0;
  for (; l + Q <= k; l += Q, out += Q * width) {
    int64_t i = 0;
    for (; i + Q <= count; i += Q) Quad<T>::turn(x + i * across + l, across, out + i, width);
    for (int64_t q = 0; q < Q; ++q) {
      for (int64_t r = i; r < count; ++r) out[q * width + r] = x[r * across + l + q];
      for (int64_t r = count; r < width; ++r) out[q * width + r] = 0;
    }
  }
  for (; l < k; ++l, out += width)
    for (int64_t i = 0; i < width; ++i) out[i] = i < count ? x[i * across + l] : 0;
}

template <class T>
void pack(const T* x, int64_t across, int64_t along, int64_t count, int64_t width, int64_t k, T* out) {
  constexpr int columns = kVectors * kLanes<T>;
  if (count == width && along == 1)
    return width == kRows ? pack_along<T, kRows>(x, across, k, out)
                          : pack_along<T, columns>(x, across, k, out);
  if (count == width && across == 1)
    return width == kRows ? pack_across<T, kRows>(x, along, k, out)
                          : pack_across<T, columns>(x, along, k, out);
  if (along == 1) return pack_few(x, across, count, width, k, out);
  for (int64_t l = 0; l < k; ++l, out += width) {
    for (int64_t i = 0; i < count; ++i) out[i] = x[i * across + l * along];
    for (int64_t i = count; i < width; ++i) out[i] = 0;
  }
}

// The sum of two registers' lanes, folded in halves.
template <class T>
[[gnu::always_inline]] inline T fold(Native<T> x, Native<T> y) {
  T lanes[kLanes<T>];
  store<T>(lanes, x + y);
  for (int half = kLanes<T> / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  return lanes[0];
}

// R rows at once, each with two registers of partial sums.
template <class T, int R>
void dot_rows(const T* a, int64_t a_row, const T* x, int64_t k, T* out) {
  constexpr int L = kLanes<T>;
  Native<T> sum[R][2] = {};
  int64_t l = 0;
  for (; l + 2 * L <= k; l += 2 * L)
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h)
        sum[i][h] = fused(load(a + i * a_row + l + h * L), load(x + l + h * L), sum[i][h]);
#pragma GCC unroll 4
  for (int i = 0; i < R; ++i) {
    T rest = 0;
    for (int64_t r = l; r < k; ++r) rest += a[i * a_row + r] * x[r];
    out[i] = fold<T>(sum[i][0], sum[i][1]) + rest;
  }
}

template <class T>
void dots(const T* a, int64_t a_row, int64_t a_column, const T* x, int64_t m, int64_t k, T* y, int64_t y_step,
          T alpha, bool accumulate) {
  constexpr int kAtOnce = 4;
  T out[kAtOnce];
  for (int64_t i = 0; i < m;) {
    const T* row = a + i * a_row;
    const int64_t count = a_column == 1 && m - i >= kAtOnce ? kAtOnce : 1;
    if (count == kAtOnce)
      dot_rows<T, kAtOnce>(row, a_row, x, k, out);
    else if (a_column == 1)
      dot_rows<T, 1>(row, a_row, x, k, out);
    else {
      out[0] = 0;
      for (int64_t l = 0; l < k; ++l) out[0] += row[l * a_column] * x[l];
    }
    for (int64_t r = 0; r < count; ++r, ++i)
      y[i * y_step] = accumulate ? y[i * y_step] + alpha * out[r] : alpha * out[r];
  }
}

// Strips of y small enough for the first-level cache take up four scaled rows of b at a time.
template <class T>
void combine(const T* x, const T* b, int64_t b_row, int64_t n, int64_t k, T* y, int64_t y_step, T alpha,
             bool accumulate) {
  constexpr int64_t kStrip = 1024;
  T sum[kStrip];
  for (int64_t begin = 0; begin < n; begin += kStrip) {
    const int64_t size = n - begin < kStrip ? n - begin : kStrip;
    for (int64_t j = 0; j < size; ++j) sum[j] = 0;
    int64_t l = 0;
    for (; l + 4 <= k; l += 4) {
      const T *p = b + l * b_row + begin, *q = p + b_row, *r = q + b_row, *s = r + b_row;
      for (int64_t j = 0; j < size; ++j)
        sum[j] += (x[l] * p[j] + x[l + 1] * q[j]) + (x[l + 2] * r[j] + x[l + 3] * s[j]);
    }
    for (; l < k; ++l)
      for (int64_t j = 0; j < size; ++j) sum[j] += x[l] * b[l * b_row + begin + j];
    for (int64_t j = 0; j < size; ++j) {
      T& out = y[(begin + j) * y_step];
      out = accumulate ? out + alpha * sum[j] : alpha * sum[j];
    }
  }
}

template <class T>
constexpr GemmKernels<T> kernels{kRows, kVectors* kLanes<T>, block<T>, pack<T>, dots<T>, combine<T>};

}  // namespace

const GemmKernels<float>& gemm_kernels(float) { return kernels<float>; }
const GemmKernels<double>& gemm_kernels(double) { return kernels<double>; }

}  // namespace retrograd::cpu::RG_ISA
