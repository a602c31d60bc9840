// Matrix products of float and double for one instruction-set level: packing, dot products and sums of scaled
// rows; the register tiles are in cpu/kernels/gemm_tiles.h. See cpu/kernels/gemm_kernels.h.
#include "cpu/kernels/gemm_pack.h"

namespace retrograd::cpu::RG_ISA {
namespace {

// `count` neighbours across a panel.
template <class T, int Width>
void pack_across(const T* x, int64_t along, int64_t count, int64_t k, T* out) {
  constexpr int L = kLanes<T>;
  for (int64_t l = 0; l < k; ++l, x += along, out += Width)
    if constexpr (kVectorBytes == 64) {
#pragma GCC unroll 4
      for (int i = 0; i < Width; i += L) {
        const int64_t some = count < i ? 0 : count - i;
        native_store_part(out + i, Width - i, native_load_part(x + i, some, Register<T>{}));
      }
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < Width; ++i) out[i] = i < count ? x[i] : 0;
    }
}

template <class T>
void pack(const T* x, int64_t across, int64_t along, int64_t count, int64_t width, int64_t k, T* out) {
  constexpr int columns = kVectors * kLanes<T>;
  const char* const bytes = reinterpret_cast<const char*>(x);
  const int64_t step = across * static_cast<int64_t>(sizeof(T));
  if (count == width && along == 1)
    return width == kRows ? pack_along<T, kRows>(bytes, step, k, out)
                          : pack_along<T, columns>(bytes, step, k, out);
  if (across == 1)
    return width == kRows ? pack_across<T, kRows>(x, along, count, k, out)
                          : pack_across<T, columns>(x, along, count, k, out);
  if (along == 1) return pack_rows<T, 0>(bytes, step, count, width, k, out);
  for (int64_t l = 0; l < k; ++l, out += width) {
    for (int64_t i = 0; i < count; ++i) out[i] = x[i * across + l * along];
    for (int64_t i = count; i < width; ++i) out[i] = 0;
  }
}

// The sum of two registers' lanes, folded in halves.
template <class T>
[[gnu::always_inline]] inline T fold(Register<T> x, Register<T> y) {
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
  Register<T> sum[R][2] = {};
  int64_t l = 0;
  for (; l + 2 * L <= k; l += 2 * L)
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h)
        sum[i][h] = native_fused(load<T>(a + i * a_row + l + h * L), load<T>(x + l + h * L), sum[i][h]);
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
