// Fused normalisations of contiguous rows of float or double: one table of functions per instruction-set
// level.
//
// Implemented by cpu/kernels/rows.cc, which is compiled once per level; other dtypes and strides come through
// tiles (cpu/kernels/row_access.h). Sums run in lanes of T over kChunk elements and in double beyond, in an
// order that depends on the length alone.
#pragma once

#include <cstdint>

namespace retrograd::cpu {

/// Mean and inverse standard deviation by which a row is normalised.
struct RowStats {
  double mean, rstd;
};

template <class T>
struct RowTable {
  // Rows of n >= 1 elements; outputs may be the inputs.
  void (*softmax)(const T* x, int64_t n, T* y);
  void (*log_softmax)(const T* x, int64_t n, T* y);
  /// dx = y * (g - sum(g * y)) and dx = g - exp(y) * sum(g).
  void (*softmax_backward)(const T* g, const T* y, int64_t n, T* dx);
  void (*log_softmax_backward)(const T* g, const T* y, int64_t n, T* dx);
  /// y = (x - mean) * rstd * weight + bias, where weight and bias may be null; the mean counts as 0 unless
  /// `center`.
  RowStats (*normalize)(const T* x, const T* weight, const T* bias, int64_t n, double eps, bool center, T* y);
  /// dx, and dweight += g * xhat, dbias += g; or dx alone where all three are null.
  void (*normalize_backward)(const T* g, const T* x, RowStats stats, const T* weight, int64_t n, bool center,
                             T* dx, T* dweight, T* dbias);
  /// The same with a weight and a bias for each `segment` elements.
  RowStats (*normalize_segments)(const T* x, const T* weight, const T* bias, int64_t n, int64_t segment,
                                 double eps, bool center, T* y);
  /// dx, and for each segment dweight = sum of g * xhat and dbias = sum of g. Without a weight: all 1.
  void (*normalize_segments_backward)(const T* g, const T* x, RowStats stats, const T* weight, int64_t n,
                                      int64_t segment, bool center, T* dx, T* dweight, T* dbias);
  /// log(sum(exp(x))).
  double (*log_sum_exp)(const T* x, int64_t n);
  /// dx = g * exp(x - lse).
  void (*scaled_softmax)(const T* x, double lse, double g, int64_t n, T* dx);
};

/// The same for `columns` rows side by side: element i of row j is x[i * x_stride + j] (cpu/kernels/rows_down.cc).
template <class T>
struct RowsDownTable {
  using Forward = void (*)(const T* x, int64_t x_stride, int64_t n, int64_t columns, T* y, int64_t y_stride);
  using Backward = void (*)(const T* g, int64_t g_stride, const T* y, int64_t y_stride, int64_t n,
                            int64_t columns, T* dx, int64_t dx_stride);
  Forward softmax, log_softmax;
  Backward softmax_backward, log_softmax_backward;
  /// As normalize and normalize_backward, with an element of weight, bias, statistics and gradients for each row;
  /// weight and bias may be null.
  void (*normalize)(const T* x, int64_t x_stride, const T* weight, const T* bias, int64_t n, int64_t columns,
                    double eps, bool center, T* y, int64_t y_stride, T* mean, T* rstd);
  void (*normalize_backward)(const T* g, int64_t g_stride, const T* x, int64_t x_stride, const T* mean,
                             const T* rstd, const T* weight, int64_t n, int64_t columns, bool center, T* dx,
                             int64_t dx_stride, T* dweight, T* dbias);
};

namespace baseline {
template <class T>
const RowTable<T>& row_table();
template <class T>
const RowsDownTable<T>& rows_down_table();
}  // namespace baseline
namespace avx2 {
template <class T>
const RowTable<T>& row_table();
template <class T>
const RowsDownTable<T>& rows_down_table();
}  // namespace avx2
namespace avx512 {
template <class T>
const RowTable<T>& row_table();
template <class T>
const RowsDownTable<T>& rows_down_table();
}  // namespace avx512

/// The table of the best level that this machine has, for T float and double.
template <class T>
const RowTable<T>& row_table();
template <class T>
const RowsDownTable<T>& rows_down_table();

}  // namespace retrograd::cpu
