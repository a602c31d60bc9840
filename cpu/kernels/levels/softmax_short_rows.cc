// Softmax and its backward of rows that fit into one register, for one instruction-set level: see RowTable in
// cpu/kernels/levels/softmax_norm_rows.h.
//
// A row is loaded once, padded with what changes nothing, and stored once; maxima and sums are made within
// the register (map_rows). The table that holds these functions is in softmax_norm_rows.cc; its `lanes` says
// how long a row may be. Only plain loops here: nothing of the standard library, no throw (tools/isa.bzl says
// why).
#include "cpu/kernels/levels/row_lanes.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

// In all lanes.
template <class T>
Vec<T> sum_of(Vec<T> x) {
  return fold_lanes<Vec<T>::size / 2>(x, [](Vec<T> a, Vec<T> b) { return a + b; });
}
template <class T>
Vec<T> max_of(Vec<T> x) {
  return fold_lanes<Vec<T>::size / 2>(x, [](Vec<T> a, Vec<T> b) { return larger(a, b); });
}

// y = f(x) for each row of x; lanes beyond a row are `fill`, and of a and b 0 and -1.
template <class T, class F>
[[gnu::always_inline]] inline void map_rows(const T* x, T fill, int64_t rows, int64_t n, T* y, const F& f) {
  for (int64_t at = 0; at < rows * n; at += n) store_part(f(load_part(x + at, n, fill)), y + at, n);
}
template <class T, class F>
[[gnu::always_inline]] inline void map_rows(const T* a, const T* b, int64_t rows, int64_t n, T* y,
                                            const F& f) {
  for (int64_t at = 0; at < rows * n; at += n)
    store_part(f(load_part(a + at, n, T(0)), load_part(b + at, n, T(-1))), y + at, n);
}

}  // namespace

template <class T>
void short_softmax(const T* x, int64_t rows, int64_t n, T* y) {
  map_rows(x, -static_cast<T>(__builtin_inf()), rows, n, y, [](Vec<T> v) {
    const Vec<T> e = exp(v - max_of(v));
    return e * (Vec<T>(T(1)) / sum_of(e));
  });
}

template <class T>
void short_log_softmax(const T* x, int64_t rows, int64_t n, T* y) {
  map_rows(x, -static_cast<T>(__builtin_inf()), rows, n, y, [](Vec<T> v) {
    const Vec<T> max = max_of(v);
    const Mask<T> is_max = v == max;
    const Vec<T> rest =
        sum_of(select(is_max, T(0), exp(v - max))) + (sum_of(select(is_max, T(1), T(0))) - T(1));
    return (v - max) - (log1p(rest) + (max - max));
  });
}

template <class T>
void short_softmax_backward(const T* g, const T* y, int64_t rows, int64_t n, T* dx) {
  map_rows(g, y, rows, n, dx, [](Vec<T> a, Vec<T> b) { return b * (a - sum_of(a * b)); });
}

template <class T>
void short_log_softmax_backward(const T* g, const T* y, int64_t rows, int64_t n, T* dx) {
  map_rows(g, y, rows, n, dx, [](Vec<T> a, Vec<T> b) { return less_share(a, b, sum_of(a)); });
}

template void short_softmax(const float*, int64_t, int64_t, float*);
template void short_log_softmax(const float*, int64_t, int64_t, float*);
template void short_softmax_backward(const float*, const float*, int64_t, int64_t, float*);
template void short_log_softmax_backward(const float*, const float*, int64_t, int64_t, float*);
template void short_softmax(const double*, int64_t, int64_t, double*);
template void short_log_softmax(const double*, int64_t, int64_t, double*);
template void short_softmax_backward(const double*, const double*, int64_t, int64_t, double*);
template void short_log_softmax_backward(const double*, const double*, int64_t, int64_t, double*);

}  // namespace retrograd::cpu::RG_ISA
