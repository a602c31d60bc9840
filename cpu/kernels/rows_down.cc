// Softmax and normalisation, and their backward, of neighbouring rows whose elements of one place lie behind each other, such as the
// columns of a matrix (cpu/kernels/lanes_down.h). See cpu/kernels/rows.h.
#include "cpu/kernels/lanes_down.h"
#include "cpu/kernels/rows.h"

namespace retrograd::cpu::RG_ISA {
namespace {

template <class T>
void softmax(const T* from, int64_t from_stride, int64_t n, int64_t columns, T* to, int64_t to_stride) {
  for_registers<T>(columns, [&](int64_t j, int64_t count) {
    const Down<T> x{from + j, from_stride, count};
    const DownTo<T> y{to + j, to_stride, count};
    const Vec<T> m = max_down(x, n);
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
    const Vec<T> m = max_down(x, n);
    const DownSums<T> sums(n, [&](int64_t i) { return exp(x.load(i) - m); });
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
    for (int64_t i = 0; i < n; ++i) out.store(gs.load(i) - exp(ys.load(i)) * sum, i);
  });
}

// A register of parameters; `value` where there are none.
template <class T>
Vec<T> load_or(const T* p, int64_t j, int64_t count, T value) {
  return p ? load_part(p + j, count, value) : Vec<T>(value);
}

// As Moments of a row: the mean is rounded to T before it is subtracted, and what that loses is made up for.
template <class T>
void normalize(const T* from, int64_t from_stride, const T* weight, const T* bias, int64_t n, int64_t columns,
               double eps, bool center, T* to, int64_t to_stride, T* mean, T* rstd) {
  using V = Vec<T>;
  const double size = static_cast<double>(n);
  for_registers<T>(columns, [&](int64_t j, int64_t count) {
    const Down<T> x{from + j, from_stride, count};
    const DownTo<T> y{to + j, to_stride, count};
    V shift = T(0);
    if (center)
      shift =
          DownSums<T>(n, [&](int64_t i) { return x.load(i); }).map([=](double sum) { return sum / size; });
    const DownSums<T> first(n, [&](int64_t i) { return x.load(i) - shift; }),
        second(n, [&](int64_t i) { return (x.load(i) - shift) * (x.load(i) - shift); });
    T rests[V::size], roots[V::size];
    for (int k = 0; k < V::size; ++k) {
      const double rest = center ? first.lanes[k] / size : 0;
      rests[k] = static_cast<T>(rest);
      roots[k] = static_cast<T>(1 / __builtin_sqrt(second.lanes[k] / size - rest * rest + eps));
    }
    const V rest = V::load(rests), scale = V::load(roots), w = load_or(weight, j, count, T(1)),
            b = load_or(bias, j, count, T(0));
    store_part(shift + rest, mean + j, count);
    store_part(scale, rstd + j, count);
    for (int64_t i = 0; i < n; ++i) y.store(((x.load(i) - shift) - rest) * scale * w + b, i);
  });
}

template <class T>
void normalize_backward(const T* g, int64_t g_stride, const T* x, int64_t x_stride, const T* means,
                        const T* rstds, const T* weight, int64_t n, int64_t columns, bool center, T* dx,
                        int64_t dx_stride, T* dweight, T* dbias) {
  const double size = static_cast<double>(n);
  for_registers<T>(columns, [&](int64_t j, int64_t count) {
    const Down<T> gs{g + j, g_stride, count}, xs{x + j, x_stride, count};
    const DownTo<T> out{dx + j, dx_stride, count};
    const Vec<T> mean = load_part(means + j, count, T(0)), rstd = load_part(rstds + j, count, T(0)),
                 w = load_or(weight, j, count, T(1));
    const auto same = [](double sum) { return sum; };
    const auto average = [size](double sum) { return sum / size; };
    const DownSums<T> sums(n, [&](int64_t i) { return gs.load(i); }),
        dots(n, [&](int64_t i) { return gs.load(i) * ((xs.load(i) - mean) * rstd); });
    store_part(dots.map(same), dweight + j, count);
    store_part(sums.map(same), dbias + j, count);
    const Vec<T> a = center ? w * sums.map(average) : Vec<T>(T(0)), b = w * dots.map(average);
    for (int64_t i = 0; i < n; ++i)
      out.store(rstd * ((gs.load(i) * w - a) - (xs.load(i) - mean) * rstd * b), i);
  });
}

}  // namespace

template <class T>
const RowsDownTable<T>& rows_down_table() {
  static constexpr RowsDownTable<T> table{softmax<T>,          log_softmax<T>,
                                          softmax_backward<T>, log_softmax_backward<T>,
                                          normalize<T>,        normalize_backward<T>};
  return table;
}
template const RowsDownTable<float>& rows_down_table<float>();
template const RowsDownTable<double>& rows_down_table<double>();

}  // namespace retrograd::cpu::RG_ISA
