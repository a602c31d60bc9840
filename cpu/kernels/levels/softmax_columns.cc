// Softmax and its backward of neighbouring rows whose elements of one place follow each other in memory, such
// as the columns of a matrix, for one instruction-set level: see RowsDownTable in
// cpu/kernels/levels/softmax_norm_rows.h.
//
// Rows are taken a register at a time, each lane going down one of them (cpu/kernels/levels/lanes_down.h).
// The table at the end also holds the functions of normalize_columns.cc. Only plain loops here: nothing of
// the standard library, no throw (tools/isa.bzl says why).
#include "cpu/kernels/levels/lanes_down.h"
#include "cpu/kernels/levels/scaled_sums.h"
#include "cpu/kernels/levels/softmax_norm_rows.h"

namespace retrograd::inline v0::cpu::RG_ISA {

// In cpu/kernels/levels/normalize_columns.cc.
template <class T>
void column_moments(const T*, int64_t, int64_t, int64_t, const T*, double*, double*);
template <class T>
void normalize_columns(const T*, int64_t, int64_t, int64_t, const T*, const T*, const T*, const T*, T*,
                       int64_t);
template <class T>
void column_gradient_sums(const T*, int64_t, const T*, int64_t, int64_t, int64_t, const T*, const T*, double*,
                          double*);
template <class T>
void normalize_columns_backward(const T*, int64_t, const T*, int64_t, int64_t, int64_t, const T*, const T*,
                                const T*, const T*, const T*, T*, int64_t);

namespace {

template <class T>
void softmax(const T* from, int64_t from_stride, int64_t n, int64_t columns, T* to, int64_t to_stride) {
  for_registers<T>(columns, [&](int64_t j, int64_t count) {
    const Down<T> x{from + j, from_stride, count};
    const DownTo<T> y{to + j, to_stride, count};
    const Vec<T> m = largest_down(x, n);
    const DownSums<T> sums(n, [&](int64_t i) {
      const Vec<T> e = exp(x.load(i) - m);
      y.store(e, i);
      return e;
    });
    const Vec<T> scale = sums.map([](double sum) { return 1 / sum; });
    for (int64_t i = 0; i < n; ++i) y.store(y.load(i) * scale, i);
  });
}

template <class T>
void log_softmax(const T* from, int64_t from_stride, int64_t n, int64_t columns, T* to, int64_t to_stride) {
  for_registers<T>(columns, [&](int64_t j, int64_t count) {
    const Down<T> x{from + j, from_stride, count};
    const DownTo<T> y{to + j, to_stride, count};
    const Vec<T> m = largest_down(x, n);
    const Vec<T> shift = log1p(RestOfExponentials<T>(x, n, m).as_register()) + (m - m);
    for (int64_t i = 0; i < n; ++i) y.store((x.load(i) - m) - shift, i);
  });
}

template <class T>
void softmax_backward(const T* g, int64_t g_stride, const T* y, int64_t y_stride, int64_t n, int64_t columns,
                      T* dx, int64_t dx_stride) {
  for_registers<T>(columns, [&](int64_t j, int64_t count) {
    const Down<T> gs{g + j, g_stride, count}, ys{y + j, y_stride, count};
    const DownTo<T> out{dx + j, dx_stride, count};
    const DownSums<T> sums(n, [&](int64_t i) { return gs.load(i) * ys.load(i); });
    const Vec<T> dot = sums.map([](double sum) { return sum; });
    for (int64_t i = 0; i < n; ++i) out.store(ys.load(i) * (gs.load(i) - dot), i);
  });
}

template <class T>
void log_softmax_backward(const T* g, int64_t g_stride, const T* y, int64_t y_stride, int64_t n,
                          int64_t columns, T* dx, int64_t dx_stride) {
  for_registers<T>(columns, [&](int64_t j, int64_t count) {
    const Down<T> gs{g + j, g_stride, count}, ys{y + j, y_stride, count};
    const DownTo<T> out{dx + j, dx_stride, count};
    const DownSums<T> sums(n, [&](int64_t i) { return gs.load(i); });
    const Vec<T> sum = sums.map([](double s) { return s; });
    for (int64_t i = 0; i < n; ++i) out.store(less_share(gs.load(i), ys.load(i), sum), i);
  });
}

template <class T>
ScaledSums scaled_moments(const T* x, int64_t stride, int64_t n, double shift) {
  return scaled_sums(x, stride, n, shift, 0);
}

}  // namespace

template <class T>
const RowsDownTable<T>& rows_down_table() {
  static constexpr RowsDownTable<T> table{softmax<T>,
                                          log_softmax<T>,
                                          softmax_backward<T>,
                                          log_softmax_backward<T>,
                                          column_moments<T>,
                                          scaled_moments<T>,
                                          normalize_columns<T>,
                                          column_gradient_sums<T>,
                                          normalize_columns_backward<T>};
  return table;
}
template const RowsDownTable<float>& rows_down_table<float>();
template const RowsDownTable<double>& rows_down_table<double>();

}  // namespace retrograd::cpu::RG_ISA
