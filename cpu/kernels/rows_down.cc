// Softmax and its backward of neighbouring rows whose elements of one place lie behind each other, such as the
// columns of a matrix: each lane of a register belongs to one row and goes down its elements. See
// cpu/kernels/rows.h. Sums run in lanes of T over kSum elements and in double beyond.
#include "cpu/kernels/row_lanes.h"
#include "cpu/kernels/rows.h"

namespace retrograd::cpu::RG_ISA {
namespace {

constexpr int64_t kSum = 128;

/// `count` neighbouring rows, at most a register: element i of each is at p[i * stride].
template <class T>
struct Down {
  const T* p;
  int64_t stride, count;

  Vec<T> load(int64_t i) const {
    return count == Vec<T>::size ? Vec<T>::load(p + i * stride) : load_part(p + i * stride, count, T(0));
  }
};
template <class T>
struct DownTo : Down<T> {
  T* to;

  DownTo(T* p, int64_t stride, int64_t count) : Down<T>{p, stride, count}, to(p) {}
  void store(Vec<T> v, int64_t i) const {
    if (this->count == Vec<T>::size)
      v.store(to + i * this->stride);
    else
      store_part(v, to + i * this->stride, this->count);
  }
};

// The sums of f(i) for i < n, one for each lane.
template <class T>
struct Sums {
  double lanes[Vec<T>::size] = {};

  template <class F>
  [[gnu::always_inline]] Sums(int64_t n, const F& f) {
    using V = Vec<T>;
    for (int64_t first = 0; first < n; first += kSum) {
      const int64_t last = n - first < kSum ? n : first + kSum;
      V acc[4] = {V(T(0)), V(T(0)), V(T(0)), V(T(0))};
      int64_t i = first;
      for (; i + 4 <= last; i += 4)
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) acc[k] += f(i + k);
      for (; i < last; ++i) acc[0] += f(i);
      T part[V::size];
      ((acc[0] + acc[1]) + (acc[2] + acc[3])).store(part);
      for (int k = 0; k < V::size; ++k) lanes[k] += static_cast<double>(part[k]);
    }
  }
  /// f of each sum, as T.
  template <class F>
  Vec<T> map(const F& f) const {
    T out[Vec<T>::size];
    for (int k = 0; k < Vec<T>::size; ++k) out[k] = static_cast<T>(f(lanes[k]));
    return Vec<T>::load(out);
  }
};

template <class T>
[[gnu::always_inline]] inline Vec<T> max_down(const Down<T>& x, int64_t n) {
  using V = Vec<T>;
  const V low = -static_cast<T>(__builtin_inf());
  V acc[4] = {low, low, low, low};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) acc[k] = maximum(acc[k], x.load(i + k));
  for (; i < n; ++i) acc[0] = maximum(acc[0], x.load(i));
  return maximum(maximum(acc[0], acc[1]), maximum(acc[2], acc[3]));
}

// Calls f(j, count) for the registers of `columns` rows.
template <class T, class F>
[[gnu::always_inline]] inline void for_registers(int64_t columns, const F& f) {
  constexpr int64_t size = Vec<T>::size;
  for (int64_t j = 0; j < columns; j += size) f(j, columns - j < size ? columns - j : size);
}

template <class T>
void softmax(const T* from, int64_t from_stride, int64_t n, int64_t columns, T* to, int64_t to_stride) {
  for_registers<T>(columns, [&](int64_t j, int64_t count) {
    const Down<T> x{from + j, from_stride, count};
    const DownTo<T> y{to + j, to_stride, count};
    const Vec<T> m = max_down(x, n);
    const Sums<T> sums(n, [&](int64_t i) {
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
    const Vec<T> m = max_down(x, n);
    const Sums<T> sums(n, [&](int64_t i) { return exp(x.load(i) - m); });
    const Vec<T> shift = log(sums.map([](double sum) { return sum; }));
    for (int64_t i = 0; i < n; ++i) y.store((x.load(i) - m) - shift, i);
  });
}

template <class T>
void softmax_backward(const T* g, int64_t g_stride, const T* y, int64_t y_stride, int64_t n, int64_t columns,
                      T* dx, int64_t dx_stride) {
  for_registers<T>(columns, [&](int64_t j, int64_t count) {
    const Down<T> gs{g + j, g_stride, count}, ys{y + j, y_stride, count};
    const DownTo<T> out{dx + j, dx_stride, count};
    const Sums<T> sums(n, [&](int64_t i) { return gs.load(i) * ys.load(i); });
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
    const Sums<T> sums(n, [&](int64_t i) { return gs.load(i); });
    const Vec<T> sum = sums.map([](double s) { return s; });
    for (int64_t i = 0; i < n; ++i) out.store(gs.load(i) - exp(ys.load(i)) * sum, i);
  });
}

}  // namespace

template <class T>
const RowsDownTable<T>& rows_down_table() {
  static constexpr RowsDownTable<T> table{softmax<T>, log_softmax<T>, softmax_backward<T>,
                                          log_softmax_backward<T>};
  return table;
}
template const RowsDownTable<float>& rows_down_table<float>();
template const RowsDownTable<double>& rows_down_table<double>();

}  // namespace retrograd::cpu::RG_ISA
