// Reductions of neighbouring rows whose elements of one place lie behind each other, such as the columns of a
// matrix: each lane of a register belongs to one row and goes down its elements. See cpu/kernels/reduce_rows.h.
// Sums run in lanes of T over kSum elements and in double beyond.
#include "cpu/kernels/row_lanes.h"

namespace retrograd::cpu::RG_ISA {
namespace {

constexpr int64_t kSum = 128;

/// Some rows as columns of memory: element i of row j is x[i * stride + j].
template <class T>
struct Columns {
  const T* x;
  int64_t rows, stride, columns;  // how many elements each, from one to the next, how many rows

  Vec<T> load(int64_t i, int64_t j, int64_t count) const {
    const T* p = x + i * stride + j;
    return count == Vec<T>::size ? Vec<T>::load(p) : load_part(p, count, T(0));
  }
  /// Calls f(j, count) for the registers of rows.
  template <class F>
  [[gnu::always_inline]] void for_registers(const F& f) const {
    for (int64_t j = 0; j < columns; j += Vec<T>::size)
      f(j, columns - j < Vec<T>::size ? columns - j : Vec<T>::size);
  }
};

// put(j, the sum over row j's elements v of f(v)).
template <class T, class F, class Put>
[[gnu::always_inline]] inline void sum_down(const Columns<T>& c, int64_t j, int64_t count, const F& f,
                                            const Put& put) {
  using V = Vec<T>;
  double total[V::size] = {};
  for (int64_t first = 0; first < c.rows; first += kSum) {
    const int64_t last = c.rows - first < kSum ? c.rows : first + kSum;
    V acc[4] = {V(T(0)), V(T(0)), V(T(0)), V(T(0))};
    int64_t i = first;
    for (; i + 4 <= last; i += 4)
      for (int k = 0; k < 4; ++k) acc[k] += f(c.load(i + k, j, count));
    for (; i < last; ++i) acc[0] += f(c.load(i, j, count));
    T lanes[V::size];
    ((acc[0] + acc[1]) + (acc[2] + acc[3])).store(lanes);
    for (int k = 0; k < V::size; ++k) total[k] += static_cast<double>(lanes[k]);
  }
  for (int64_t k = 0; k < count; ++k) put(j + k, total[k]);
}

template <class T, class F>
void sums(const Columns<T>& c, const F& f, Partial<double>* out) {
  c.for_registers([&](int64_t j, int64_t count) {
    sum_down(c, j, count, f, [&](int64_t row, double sum) { out[row].value = sum; });
  });
}

template <class T, class F, class G>
[[gnu::always_inline]] inline Vec<T> fold_down(const Columns<T>& c, int64_t j, int64_t count, T first,
                                               const F& f, const G& g) {
  using V = Vec<T>;
  V acc[4] = {V(first), V(first), V(first), V(first)};
  int64_t i = 0;
  for (; i + 4 <= c.rows; i += 4)
    for (int k = 0; k < 4; ++k) acc[k] = f(acc[k], g(c.load(i + k, j, count)));
  for (; i < c.rows; ++i) acc[0] = f(acc[0], g(c.load(i, j, count)));
  return f(f(acc[0], acc[1]), f(acc[2], acc[3]));
}

template <class T, class F, class G>
void folds(const Columns<T>& c, T first, const F& f, const G& g, Partial<double>* out) {
  c.for_registers([&](int64_t j, int64_t count) {
    T lanes[Vec<T>::size];
    fold_down(c, j, count, first, f, g).store(lanes);
    for (int64_t k = 0; k < count; ++k) out[j + k].value = static_cast<double>(lanes[k]);
  });
}

// The first place counts; a NaN is beyond all numbers.
template <class T, bool larger>
void extremes(const Columns<T>& c, Partial<double>* out) {
  using V = Vec<T>;
  c.for_registers([&](int64_t j, int64_t count) {
    V best = c.load(0, j, count), place = V(T(0));  // places up to kChunk are exact in T
    for (int64_t i = 1; i < c.rows; ++i) {
      const V v = c.load(i, j, count);
      const Mask<T> better = (!isnan(best)) & ((larger ? v > best : v < best) | isnan(v));
      best = select(better, v, best);
      place = select(better, V(static_cast<T>(i)), place);
    }
    T values[V::size], places[V::size];
    best.store(values);
    place.store(places);
    for (int64_t k = 0; k < count; ++k) {
      out[j + k].value = static_cast<double>(values[k]);
      out[j + k].index = static_cast<int64_t>(places[k]);
    }
  });
}

template <class T>
void products(const Columns<T>& c, Partial<double>* out) {
  double p[kMostRows];
  for (int64_t j = 0; j < c.columns; ++j) p[j] = 1;
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.columns; ++j) p[j] *= static_cast<double>(c.x[i * c.stride + j]);
  for (int64_t j = 0; j < c.columns; ++j) out[j].value = p[j];
}

// As moments() of a row: the mean is rounded to T before it is subtracted, and what that loses is made up for.
template <class T>
void moments(const Columns<T>& c, Partial<double>* out) {
  const double n = static_cast<double>(c.rows);
  c.for_registers([&](int64_t j, int64_t count) {
    T mean[Vec<T>::size] = {};
    double first[Vec<T>::size] = {};
    sum_down(
        c, j, count, [](Vec<T> v) { return v; },
        [&](int64_t row, double sum) { mean[row - j] = static_cast<T>(sum / n); });
    const Vec<T> shift = Vec<T>::load(mean);
    sum_down(
        c, j, count, [&](Vec<T> v) { return v - shift; },
        [&](int64_t row, double sum) { first[row - j] = sum; });
    sum_down(
        c, j, count, [&](Vec<T> v) { return (v - shift) * (v - shift); },
        [&](int64_t row, double sum) {
          const double rest = first[row - j] / n;
          out[row].value = static_cast<double>(mean[row - j]) + rest;
          out[row].second = sum - rest * first[row - j];
        });
  });
}

template <class T>
void exponentials(const Columns<T>& c, Partial<double>* out) {
  const T inf = static_cast<T>(__builtin_inf());
  c.for_registers([&](int64_t j, int64_t count) {
    const Vec<T> shift = fold_down(
        c, j, count, -inf, [](Vec<T> a, Vec<T> b) { return maximum(a, b); }, [](Vec<T> v) { return v; });
    T m[Vec<T>::size];
    shift.store(m);
    sum_down(
        c, j, count, [&](Vec<T> v) { return exp(v - shift); },
        [&](int64_t row, double sum) {
          const T most = m[row - j];
          out[row].value = static_cast<double>(most);
          out[row].second = most - most == 0 ? sum : most > 0 ? 1 : 0;  // infinite, or NaN
        });
  });
}

}  // namespace

template <class T>
void reduce_columns(const T* x, int64_t rows, int64_t stride, int64_t columns, Reduction kind, double p,
                    Partial<double>* out) {
  using V = Vec<T>;
  const Columns<T> c{x, rows, stride, columns};
  const T inf = static_cast<T>(__builtin_inf());
  const auto self = [](V v) { return v; };
  const auto magnitude = [](V v) { return abs(v); };
  const auto larger = [](V a, V b) { return maximum(a, b); };
  const auto smaller = [](V a, V b) { return minimum(a, b); };
  for (int64_t j = 0; j < columns; ++j) out[j].count = rows;
  switch (kind) {
    case Reduction::sum: return sums(c, self, out);
    case Reduction::abs_sum: return sums(c, magnitude, out);
    case Reduction::square_sum:
      return sums(
          c, [](V v) { return v * v; }, out);
    case Reduction::power_sum:
      return sums(
          c, [e = V(static_cast<T>(p))](V v) { return pow(abs(v), e); }, out);
    case Reduction::nonzero:
      return sums(
          c, [](V v) { return select(v != V(T(0)), V(T(1)), V(T(0))); }, out);
    case Reduction::prod: return products(c, out);
    case Reduction::moments: return moments(c, out);
    case Reduction::logsumexp: return exponentials(c, out);
    case Reduction::abs_max: return folds(c, T(0), larger, magnitude, out);
    case Reduction::abs_min: return folds(c, inf, smaller, magnitude, out);
    case Reduction::max: return folds(c, -inf, larger, self, out);
    case Reduction::min: return folds(c, inf, smaller, self, out);
    case Reduction::argmax: return extremes<T, true>(c, out);
    case Reduction::argmin: return extremes<T, false>(c, out);
  }
}
template void reduce_columns(const float*, int64_t, int64_t, int64_t, Reduction, double, Partial<double>*);
template void reduce_columns(const double*, int64_t, int64_t, int64_t, Reduction, double, Partial<double>*);

}  // namespace retrograd::cpu::RG_ISA
