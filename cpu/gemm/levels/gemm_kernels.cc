// Matrix products of float and double for one instruction-set level: see cpu/gemm/levels/gemm_kernels.h.
//
// This file has what surrounds the register tiles: packing, dot products of few rows with many (narrow), dot
// products with one vector (dots), and sums of scaled rows (combine). The register tiles are in gemm_tiles.h,
// their order in gemm_panels.h; squares that are transposed while they are packed are in gemm_pack.h. Start
// reading at `kernels`, the table at the end. Only plain loops here (tools/isa.bzl says why).
#include "cpu/gemm/levels/gemm_pack.h"
#include "cpu/gemm/levels/gemm_panels.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

// `count` neighbours across a panel, at most Width.
template <class T, int Width>
void pack_part(const T* x, int64_t along, int64_t count, int64_t k, T* out) {
  for (int64_t l = 0; l < k; ++l, x += along, out += Width)
    if constexpr (kVectorBytes == 64) {
#pragma GCC unroll 4
      for (int i = 0; i < Width; i += kLanes<T>) {
        const int64_t some = count < i ? 0 : count - i;
        native_store_part(out + i, Width - i, native_load_part(x + i, some, Register<T>{}));
      }
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < Width; ++i) out[i] = i < count ? x[i] : 0;
    }
}

// Elements that have no neighbours.
template <class T>
void pack_each(const T* x, int64_t across, int64_t along, int64_t count, int width, int64_t k, T* out) {
  for (int64_t l = 0; l < k; ++l, out += width) {
    for (int64_t i = 0; i < count; ++i) out[i] = x[i * across + l * along];
    for (int64_t i = count; i < width; ++i) out[i] = 0;
  }
}

// Width neighbours, as whole registers: what these read beyond lies before the next step's neighbours, and what they
// write there the next step overwrites. So the last step of a panel does without, and steps that lie close.
template <class T, int Width>
[[gnu::always_inline]] inline void pack_whole(const T* x, int64_t along, int64_t k, T* out, bool last) {
  constexpr int size = (Width + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
  const int64_t loose = along < size ? 0 : last ? k - 1 : k;
  int64_t l = 0;
  for (; l < loose; ++l)
#pragma GCC unroll 2
    for (int i = 0; i < size; i += kLanes<T>) store<T>(out + l * Width + i, load<T>(x + l * along + i));
  for (; l < k; ++l) __builtin_memcpy(out + l * Width, x + l * along, Width * sizeof(T));
}

// Neighbours across panels: some steps of all panels before the next ones, so that lines which panels share are read
// once.
template <class T, int Width>
void pack_across(const T* x, int64_t along, int64_t count, int64_t k, T* out, int64_t panel) {
  for (int64_t l = 0; l < k; l += kStepsAtOnce) {
    const bool last = l + kStepsAtOnce >= k;
    const int64_t steps = last ? k - l : kStepsAtOnce;
    const T* from = x + l * along;
    T* to = out + l * Width;
    int64_t left = count;
    for (; kVectorBytes < 64 && left >= Width; left -= Width, from += Width, to += panel)
      pack_whole<T, Width>(from, along, steps, to, last);
    for (; left > 0; left -= Width, from += Width, to += panel)
      pack_part<T, Width>(from, along, left < Width ? left : Width, steps, to);
  }
}

template <class T>
void pack(const T* x, int64_t across, int64_t along, int64_t count, int width, int64_t k, T* out,
          int64_t panel) {
  constexpr int columns = kVectors * kLanes<T>;
  if (across == 1 && along != 1)
    return width == kRows ? pack_across<T, kRows>(x, along, count, k, out, panel)
                          : pack_across<T, columns>(x, along, count, k, out, panel);
  const int64_t step = across * static_cast<int64_t>(sizeof(T));
  for (; count > 0; count -= width, x += width * across, out += panel) {
    const int64_t some = count < width ? count : width;
    const char* const bytes = reinterpret_cast<const char*>(x);
    if (along != 1)
      pack_each(x, across, along, some, width, k, out);
    else if (width == kRows)
      pack_along<T, kRows>(bytes, step, some, k, out);
    else
      pack_along<T, columns>(bytes, step, some, k, out);
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

template <class T>
using Lanes = typename Format<T>::Ints;
template <class T>
[[gnu::always_inline]] inline Lanes<T> count_lanes() {
  Lanes<T> lane;
  for (int j = 0; j < kLanes<T>; ++j) lane[j] = j;
  return lane;
}

// The sum of a register's lanes, by halves.
template <class T>
[[gnu::always_inline]] inline T fold(Register<T> x, int half = kLanes<T> / 2) {
  for (; half > 0; half /= 2) x += __builtin_shuffle(x, count_lanes<T>() + half);
  return x[0];
}

// The same of four registers, which share the work.
template <class T>
[[gnu::always_inline]] inline void fold_four(const Register<T>* x, T* out) {
  constexpr int L = kLanes<T>;
  const Lanes<T> lane = count_lanes<T>();
  if constexpr (L < 4) {
    for (int i = 0; i < 4; ++i) out[i] = fold<T>(x[i]);
  } else {
    // Lane j of a sum of two: of the first one if j is in the lower half; of four, by quarters.
    const Lanes<T> by_half = lane + (lane & (L / 2)), by_quarter = lane + (lane & (L / 4)) + (lane & (L / 2));
    const auto add =
        [](Register<T> a, Register<T> b, Lanes<T> low, int distance) __attribute__((always_inline)) {
      return __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, low + distance);
    };
    const Register<T> low = add(x[0], x[1], by_half, L / 2), high = add(x[2], x[3], by_half, L / 2);
    Register<T> all = add(low, high, by_quarter, L / 4);
    for (int half = L / 8; half > 0; half /= 2) all += __builtin_shuffle(all, lane + half);
    for (int i = 0; i < 4; ++i) out[i] = all[i * (L / 4)];
  }
}

// Dot products of R rows of a and C rows of b, each in a register of its own. Rows of a before `first` are
// left out of the result.
template <class T, int R, int C>
void dot_tile(const GemmDots<T>& x, int64_t i, int64_t j, int64_t first) {
  constexpr int L = kLanes<T>;
  const T *a = x.a + i * x.a_row, *b = x.b + j * x.b_row;
  Register<T> sum[R][C] = {};
  const auto add = [&](auto load) __attribute__((always_inline)) {
    Register<T> right[C];
#pragma GCC unroll 8
    for (int q = 0; q < C; ++q) right[q] = load(b + q * x.b_row);
#pragma GCC unroll 8
    for (int p = 0; p < R; ++p) {
      const Register<T> left = load(a + p * x.a_row);
#pragma GCC unroll 8
      for (int q = 0; q < C; ++q) sum[p][q] = native_fused(left, right[q], sum[p][q]);
    }
  };
  int64_t l = x.k;
  for (; l >= L; l -= L, a += L, b += L) add([](const T* p) { return load<T>(p); });
  if (l > 0) add([l](const T* p) { return native_load_part(p, l, Register<T>{}); });
  T dots[R * C];
  constexpr int fours = R * C / 4 * 4;
#pragma GCC unroll 8
  for (int i = 0; i < fours; i += 4) fold_four<T>(&sum[0][0] + i, dots + i);
  for (int i = fours; i < R * C; ++i) dots[i] = fold<T>((&sum[0][0])[i]);
  for (int p = first - i; p < R; ++p)
    for (int q = 0; q < C; ++q) {
      T& out = x.c[(i + p) * x.c_row + (j + q) * x.c_column];
      const T dot = x.alpha * dots[p * C + q];
      out = x.accumulate ? out + dot : dot;
    }
}

constexpr int kDotColumns = kVectorBytes == 64 ? 6 : 3;  // of a tile

// Of C rows of b. The last tile of rows of a begins so that it is full, if there are enough.
template <class T, int C>
void dot_columns(const GemmDots<T>& x, int64_t i, int64_t rows, int64_t j) {
  constexpr int R = kVectorBytes == 64 ? (C <= 2 ? 8 : 24 / C) : C == 1 ? 8 : 4 - C / 3;
  const int64_t end = i + rows;
  int64_t row = i;
  for (; row + R <= end; row += R) dot_tile<T, R, C>(x, row, j, row);
  if (row < end && rows >= R) return dot_tile<T, R, C>(x, end - R, j, row);
  for (; row < end; ++row) dot_tile<T, 1, C>(x, row, j, row);
}

template <class T, int C = kDotColumns>
void dot_columns(int64_t columns, const GemmDots<T>& x, int64_t i, int64_t rows, int64_t j) {
  if (columns == C) return dot_columns<T, C>(x, i, rows, j);
  if constexpr (C > 1) dot_columns<T, C - 1>(columns, x, i, rows, j);
}

// Some rows of a at a time, so that they are in the first-level cache for all rows of b.
template <class T>
void narrow(const GemmDots<T>& x) {
  constexpr int64_t kRowsAtOnce = 24;
  const int64_t pieces = (x.n + kDotColumns - 1) / kDotColumns;
  for (int64_t i = 0; i < x.m; i += kRowsAtOnce) {
    const int64_t rows = x.m - i < kRowsAtOnce ? x.m - i : kRowsAtOnce;
    for (int64_t q = 0; q < pieces; ++q) {
      const int64_t j = x.n * q / pieces;
      dot_columns<T>(x.n * (q + 1) / pieces - j, x, i, rows, j);
    }
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
constexpr GemmKernels<T> kernels{.rows = kRows,
                                 .columns = kVectors* kLanes<T>,
                                 .row_panels = kRowPanels<T>,
                                 .column_panels = kColumnPanels,
                                 .keeps_columns = kKeepsColumns,
                                 .near_b = kNearB,
                                 .far_step = kFarStep,
                                 .block = block<T>,
                                 .pack = pack<T>,
                                 .dots = dots<T>,
                                 .combine = combine<T>,
                                 .narrow = narrow<T>};

}  // namespace

const GemmKernels<float>& gemm_kernels(float) { return kernels<float>; }
const GemmKernels<double>& gemm_kernels(double) { return kernels<double>; }

}  // namespace retrograd::cpu::RG_ISA
