// Reductions of neighbouring rows whose elements of one place follow each other in memory, such as the
// columns of a matrix, for one instruction-set level: see cpu/kernels/levels/reduce_rows.h.
//
// reduce_columns() has a function for each group of Reductions; each takes the rows a register at a time
// (cpu/kernels/levels/lanes_down.h) and gives the same kinds of Partials as a row would. Up to kMostRows rows
// come in one call. The table that holds this function is in reduce_rows.cc. Only plain loops here: nothing
// of the standard library, no throw (tools/isa.bzl says why).
#include "cpu/kernels/levels/lanes_down.h"
#include "cpu/kernels/levels/scaled_sums.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

/// Some rows as columns of memory: element i of row j is x[i * stride + j].
template <class T>
struct Columns {
  const T* x;
  int64_t rows, stride, columns;  // how many elements each, from one to the next, how many rows

  /// Calls f(down, j) for the registers of rows, of which j is the first one's number.
  template <class F>
  [[gnu::always_inline]] void for_downs(const F& f) const {
    for_registers<T>(columns, [&](int64_t j, int64_t count) { f(Down<T>{x + j, stride, count}, j); });
  }
};

template <class T, class F>
void sums(const Columns<T>& c, const F& f, Partial<double>* out) {
  c.for_downs([&](const Down<T>& x, int64_t j) {
    const DownSums<T> found(c.rows, [&](int64_t i) { return f(x.load(i)); });
    for (int64_t k = 0; k < x.count; ++k) out[j + k].value = found.lanes[k];
  });
}

// Sums of powers, made again of scaled elements where they leave the range.
template <class T, class F>
void powers(const Columns<T>& c, double p, const F& f, Partial<double>* out) {
  sums(c, f, out);
  for (int64_t j = 0; j < c.columns; ++j) {
    if (is_in_range<T>(out[j].value)) continue;
    const ScaledSums found = scaled_sums(c.x + j, c.stride, c.rows, 0, p);
    if (!found.is_of_use) continue;
    out[j].value = found.powers;
    out[j].exponent = found.exponent;
  }
}

template <class T, class F, class G>
void folds(const Columns<T>& c, T first, const F& f, const G& g, Partial<double>* out) {
  c.for_downs([&](const Down<T>& x, int64_t j) {
    T lanes[Vec<T>::size];
    fold_down(x, c.rows, first, f, g).store(lanes);
    for (int64_t k = 0; k < x.count; ++k) out[j + k].value = static_cast<double>(lanes[k]);
  });
}

// The first place counts; a NaN is beyond all numbers.
template <class T, bool larger>
void extremes(const Columns<T>& c, Partial<double>* out) {
  using V = Vec<T>;
  c.for_downs([&](const Down<T>& x, int64_t j) {
    V best = x.load(0), place = V(T(0));  // places up to kChunk are exact in T
    for (int64_t i = 1; i < c.rows; ++i) {
      const V v = x.load(i);
      const Mask<T> better = (!isnan(best)) & ((larger ? v > best : v < best) | isnan(v));
      best = select(better, v, best);
      place = select(better, V(static_cast<T>(i)), place);
    }
    T values[V::size], places[V::size];
    best.store(values);
    place.store(places);
    for (int64_t k = 0; k < x.count; ++k) {
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

// As moments() of a row: the mean is rounded to T before it is subtracted, and what that loses is made up
// for.
template <class T>
void moments(const Columns<T>& c, Partial<double>* out) {
  const double n = static_cast<double>(c.rows);
  c.for_downs([&](const Down<T>& x, int64_t j) {
    const Vec<T> shift = mean_down(x, c.rows);
    const DownSumPairs<T> found(c.rows, [&](int64_t i) {
      const Vec<T> d = x.load(i) - shift;
      return VecPair<T>{d, d * d};
    });
    T mean[Vec<T>::size];
    shift.store(mean);
    for (int64_t k = 0; k < x.count; ++k) {
      double sum = found.first.lanes[k], squares = found.second.lanes[k];
      Partial<double>& to = out[j + k];
      if (!is_in_range<T>(squares)) {
        const ScaledSums again = scaled_sums(c.x + j + k, c.stride, c.rows, static_cast<double>(mean[k]), 0);
        if (again.is_of_use) {
          sum = again.sum;
          squares = again.squares;
          to.exponent = again.exponent;
        }
      }
      const double rest = sum / n;
      to.value = static_cast<double>(mean[k]) + ops::scaled_by_exponent(rest, to.exponent);
      to.second = squares - rest * sum;
    }
  });
}

template <class T>
void exponentials(const Columns<T>& c, Partial<double>* out) {
  c.for_downs([&](const Down<T>& x, int64_t j) {
    const Vec<T> shift = max_down(x, c.rows);
    const RestOfExponentials<T> found(x, c.rows, shift);
    T m[Vec<T>::size];
    shift.store(m);
    for (int64_t k = 0; k < x.count; ++k) {
      const T most = m[k];
      out[j + k].value = static_cast<double>(most);
      out[j + k].second = most - most == 0 ? found.lanes[k] : 0;
    }
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
      return powers(
          c, 2, [](V v) { return v * v; }, out);
    case Reduction::power_sum:
      return powers(
          c, p, [e = V(static_cast<T>(p))](V v) { return pow(abs(v), e); }, out);
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
