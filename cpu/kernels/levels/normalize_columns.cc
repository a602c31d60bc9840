// Normalisation of the columns of a matrix, row by row, for one instruction-set level: see RowsDownTable in
// cpu/kernels/levels/softmax_norm_rows.h.
//
// Rows are taken kRows at a time, so that what belongs to a column is read once for all of them. Sums run in
// T over kSum rows and in double beyond, for kColumns columns at a time. The table that holds these functions
// is in softmax_columns.cc. Only plain loops here: nothing of the standard library, no throw (tools/isa.bzl
// says why).
#include <cstdint>

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

constexpr int64_t kRows = 4, kSum = 128, kColumns = 256;

template <int64_t n>
struct Group {
  static constexpr int64_t rows = n;
};

// f(first row, group) for groups of kRows rows, and for each row that is left.
template <class F>
[[gnu::always_inline]] inline void for_rows(int64_t begin, int64_t end, const F& f) {
  int64_t i = begin;
  for (; i + kRows <= end; i += kRows) f(i, Group<kRows>());
  for (; i < end; ++i) f(i, Group<1>());
}

// sums[j] and more[j] += the sums over n rows of what add(i, rows, j, sum, other) adds for rows [i, i +
// rows).
template <class T, class F>
[[gnu::always_inline]] inline void add_columns(int64_t n, int64_t columns, double* sums, double* more,
                                               const F& add) {
  T sum[kColumns], other[kColumns];
  for (int64_t first = 0; first < columns; first += kColumns) {
    const int64_t count = columns - first < kColumns ? columns - first : kColumns;
    for (int64_t begin = 0; begin < n; begin += kSum) {
      for (int64_t j = 0; j < count; ++j) sum[j] = other[j] = 0;
      for_rows(begin, n - begin < kSum ? n : begin + kSum, [&](int64_t i, auto group) {
        for (int64_t j = 0; j < count; ++j) add(i, group, first + j, sum[j], other[j]);
      });
      for (int64_t j = 0; j < count; ++j) {
        sums[first + j] += static_cast<double>(sum[j]);
        more[first + j] += static_cast<double>(other[j]);
      }
    }
  }
}

}  // namespace

template <class T>
void column_moments(const T* x, int64_t stride, int64_t n, int64_t columns, const T* shift, double* sums,
                    double* squares) {
  add_columns<T>(n, columns, sums, squares, [=](int64_t i, auto group, int64_t j, T& sum, T& square) {
    T s = 0, q = 0;
#pragma GCC unroll 4
    for (int64_t k = 0; k < group.rows; ++k) {
      const T d = x[(i + k) * stride + j] - shift[j];
      s += d;
      q += d * d;
    }
    sum += s;
    square += q;
  });
}

template <class T>
void normalize_columns(const T* x, int64_t x_stride, int64_t n, int64_t columns, const T* __restrict shift,
                       const T* __restrict rest, const T* __restrict scale, const T* __restrict bias, T* y,
                       int64_t y_stride) {
  for_rows(0, n, [&](int64_t i, auto group) {
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j)
#pragma GCC unroll 4
      for (int64_t k = 0; k < group.rows; ++k)
        y[(i + k) * y_stride + j] = ((x[(i + k) * x_stride + j] - shift[j]) - rest[j]) * scale[j] + bias[j];
  });
}

template <class T>
void column_gradient_sums(const T* g, int64_t g_stride, const T* x, int64_t x_stride, int64_t n,
                          int64_t columns, const T* mean, const T* rstd, double* sums, double* dots) {
  add_columns<T>(n, columns, sums, dots, [=](int64_t i, auto group, int64_t j, T& sum, T& dot) {
    T s = 0, d = 0;
#pragma GCC unroll 4
    for (int64_t k = 0; k < group.rows; ++k) {
      const T v = g[(i + k) * g_stride + j];
      s += v;
      d += v * ((x[(i + k) * x_stride + j] - mean[j]) * rstd[j]);
    }
    sum += s;
    dot += d;
  });
}

template <class T>
void normalize_columns_backward(const T* g, int64_t g_stride, const T* x, int64_t x_stride, int64_t n,
                                int64_t columns, const T* __restrict mean, const T* __restrict rstd,
                                const T* __restrict weight, const T* __restrict a, const T* __restrict b,
                                T* dx, int64_t dx_stride) {
  for_rows(0, n, [&](int64_t i, auto group) {
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j)
#pragma GCC unroll 4
      for (int64_t k = 0; k < group.rows; ++k)
        dx[(i + k) * dx_stride + j] = rstd[j] * ((g[(i + k) * g_stride + j] * weight[j] - a[j]) -
                                                 (x[(i + k) * x_stride + j] - mean[j]) * rstd[j] * b[j]);
  });
}

#define RETROGRAD_COLUMNS(T)                                                                                 \
  template void column_moments(const T*, int64_t, int64_t, int64_t, const T*, double*, double*);             \
  template void normalize_columns(const T*, int64_t, int64_t, int64_t, const T*, const T*, const T*,         \
                                  const T*, T*, int64_t);                                                    \
  template void column_gradient_sums(const T*, int64_t, const T*, int64_t, int64_t, int64_t, const T*,       \
                                     const T*, double*, double*);                                            \
  template void normalize_columns_backward(const T*, int64_t, const T*, int64_t, int64_t, int64_t, const T*, \
                                           const T*, const T*, const T*, const T*, T*, int64_t);
RETROGRAD_COLUMNS(float)
RETROGRAD_COLUMNS(double)
#undef RETROGRAD_COLUMNS

}  // namespace retrograd::cpu::RG_ISA
