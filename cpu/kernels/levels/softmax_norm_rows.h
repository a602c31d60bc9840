// Softmax, normalisation and cross entropy of contiguous rows of float or double: two tables of functions per
// instruction-set level.
//
//   RowTable       rows one by one: softmax_norm_rows.cc; short rows several at a time: softmax_short_rows.cc
//   RowsDownTable  neighbouring rows together, as the columns of a matrix: softmax_columns.cc, normalize_columns.cc
//
// Other dtypes and strides come through tiles (cpu/kernels/row_access.h). Sums run in lanes of T over kChunk
// elements and in double beyond, in an order that depends on the length alone.
#pragma once

#include <cstdint>

#include "cpu/kernels/levels/scaled_sums.h"
#include "cpu/levels.h"

namespace retrograd::inline v0::cpu {

/// Mean and inverse standard deviation by which a row is normalised.
struct RowStats {
  double mean, rstd;
};
/// A row's largest element, and log(sum(exp(x - max))), which is exact near 0.
struct LogSum {
  double max, log;
};

template <class T>
struct RowTable {
  // Rows of n >= 1 elements; outputs may be the inputs.
  void (*softmax)(const T* x, int64_t n, T* y);
  void (*log_softmax)(const T* x, int64_t n, T* y);
  /// dx = y * (g - sum(g * y)) and dx = g - exp(y) * sum(g), where exp(y) is near 1 by 1 - exp(y).
  void (*softmax_backward)(const T* g, const T* y, int64_t n, T* dx);
  void (*log_softmax_backward)(const T* g, const T* y, int64_t n, T* dx);
  /// y = (x - mean) * rstd * weight + bias, where weight and bias may be null; the mean counts as 0 unless
  /// `center`. For `rows` rows, x_step and y_step apart, with the same weight and bias; the statistics of each.
  void (*normalize)(const T* x, int64_t x_step, const T* weight, const T* bias, int64_t rows, int64_t n,
                    double eps, bool center, T* y, int64_t y_step, RowStats* stats);
  /// dx, and dweight += g * xhat, dbias += g; or dx alone where all three are null.
  void (*normalize_backward)(const T* g, const T* x, RowStats stats, const T* weight, int64_t n, bool center,
                             T* dx, T* dweight, T* dbias);
  /// The same with a weight and a bias for each `segment` elements.
  RowStats (*normalize_segments)(const T* x, const T* weight, const T* bias, int64_t n, int64_t segment,
                                 double eps, bool center, T* y);
  /// dx, and for each segment dweight = sum of g * xhat and dbias = sum of g. Without a weight: all 1.
  void (*normalize_segments_backward)(const T* g, const T* x, RowStats stats, const T* weight, int64_t n,
                                      int64_t segment, bool center, T* dx, T* dweight, T* dbias);
  /// The first four for `rows` rows one after the other, of at most `lanes` elements each.
  int64_t lanes;
  void (*short_softmax)(const T* x, int64_t rows, int64_t n, T* y);
  void (*short_log_softmax)(const T* x, int64_t rows, int64_t n, T* y);
  void (*short_softmax_backward)(const T* g, const T* y, int64_t rows, int64_t n, T* dx);
  void (*short_log_softmax_backward)(const T* g, const T* y, int64_t rows, int64_t n, T* dx);
  LogSum (*log_sum)(const T* x, int64_t n);
  /// dx = g * exp((x - max) - log).
  void (*scaled_softmax)(const T* x, LogSum sum, double g, int64_t n, T* dx);
};

/// The same for `columns` rows side by side: element i of row j is x[i * x_stride + j]
/// (cpu/kernels/levels/softmax_columns.cc, normalize_columns.cc).
template <class T>
struct RowsDownTable {
  using Forward = void (*)(const T* x, int64_t x_stride, int64_t n, int64_t columns, T* y, int64_t y_stride);
  using Backward = void (*)(const T* g, int64_t g_stride, const T* y, int64_t y_stride, int64_t n,
                            int64_t columns, T* dx, int64_t dx_stride);
  Forward softmax, log_softmax;
  Backward softmax_backward, log_softmax_backward;
  /// Parts of the normalisation of columns: `n` rows of x, from one to the next x_stride, of `columns`
  /// elements each; all else has an element for each column. sums += x - shift, squares += (x - shift)^2.
  void (*moments)(const T* x, int64_t x_stride, int64_t n, int64_t columns, const T* shift, double* sums,
                  double* squares);
  /// Of one column whose squares are out of range.
  ScaledSums (*scaled_moments)(const T* x, int64_t x_stride, int64_t n, double shift);
  /// y = ((x - shift) - rest) * scale + bias.
  void (*normalize)(const T* x, int64_t x_stride, int64_t n, int64_t columns, const T* shift, const T* rest,
                    const T* scale, const T* bias, T* y, int64_t y_stride);
  /// sums += g, dots += g * xhat, where xhat = (x - mean) * rstd.
  void (*gradient_sums)(const T* g, int64_t g_stride, const T* x, int64_t x_stride, int64_t n,
                        int64_t columns, const T* mean, const T* rstd, double* sums, double* dots);
  /// dx = rstd * ((g * weight - a) - xhat * b).
  void (*normalize_backward)(const T* g, int64_t g_stride, const T* x, int64_t x_stride, int64_t n,
                             int64_t columns, const T* mean, const T* rstd, const T* weight, const T* a,
                             const T* b, T* dx, int64_t dx_stride);
};

RG_EACH_LEVEL(template <class T> const RowTable<T>& row_table();)
/// The table of the best level, for T float and double.
template <class T>
const RowTable<T>& row_table() {
  RG_RETURN_BEST_LEVEL(row_table<T>());
}

RG_EACH_LEVEL(template <class T> const RowsDownTable<T>& rows_down_table();)
/// The table of the best level, for T float and double.
template <class T>
const RowsDownTable<T>& rows_down_table() {
  RG_RETURN_BEST_LEVEL(rows_down_table<T>());
}

}  // namespace retrograd::cpu
