// Neighbouring rows whose elements of one place follow each other in memory, such as the columns of a matrix:
// each lane of a register belongs to one row and goes down its elements. The counterpart of
// cpu/kernels/levels/row_lanes.h.
//
// Down<T> is a register's width of such rows, DownSums their sums, fold_down() any other fold. Sums run in
// lanes of T over kDownSum elements and in double beyond, in an order that depends on the number of elements
// alone. For sources that are compiled once per instruction-set level (cpu/vec/vec.h).
#pragma once

#include "cpu/kernels/levels/row_lanes.h"

namespace retrograd::inline v0::cpu::RG_ISA {

inline constexpr int64_t kDownSum = 128;

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

/// Calls f(j, count) for the registers of `columns` rows.
template <class T, class F>
[[gnu::always_inline]] inline void for_registers(int64_t columns, const F& f) {
  constexpr int64_t size = Vec<T>::size;
  for (int64_t j = 0; j < columns; j += size) f(j, columns - j < size ? columns - j : size);
}

/// The sums of f(i) for i < n, one for each lane.
template <class T>
struct DownSums {
  double lanes[Vec<T>::size] = {};

  template <class F>
  [[gnu::always_inline]] DownSums(int64_t n, const F& f) {
    using V = Vec<T>;
    for (int64_t first = 0; first < n; first += kDownSum) {
      const int64_t last = n - first < kDownSum ? n : first + kDownSum;
      V acc[4] = {V(T(0)), V(T(0)), V(T(0)), V(T(0))};
      int64_t i = first;
      for (; i + 4 <= last; i += 4)
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) acc[k] += f(i + k);
      for (; i < last; ++i) acc[0] += f(i);
      add(acc);
    }
  }
  DownSums() = default;
  [[gnu::always_inline]] void add(const Vec<T> (&acc)[4]) {
    T part[Vec<T>::size];
    ((acc[0] + acc[1]) + (acc[2] + acc[3])).store(part);
    for (int k = 0; k < Vec<T>::size; ++k) lanes[k] += static_cast<double>(part[k]);
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
struct VecPair {
  Vec<T> first, second;
};

/// DownSums of both results of f, with one pass over the elements.
template <class T>
struct DownSumPairs {
  DownSums<T> first, second;

  template <class F>
  [[gnu::always_inline]] DownSumPairs(int64_t n, const F& f) {
    using V = Vec<T>;
    for (int64_t begin = 0; begin < n; begin += kDownSum) {
      const int64_t end = n - begin < kDownSum ? n : begin + kDownSum;
      V a[4] = {V(T(0)), V(T(0)), V(T(0)), V(T(0))}, b[4] = {V(T(0)), V(T(0)), V(T(0)), V(T(0))};
      const auto take = [&](int64_t i, int k) {
        const VecPair<T> found = f(i);
        a[k] += found.first;
        b[k] += found.second;
      };
      int64_t i = begin;
      for (; i + 4 <= end; i += 4)
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) take(i + k, k);
      for (; i < end; ++i) take(i, 0);
      first.add(a);
      second.add(b);
    }
  }
};

/// For each lane f(...f(first, g(x[0]))..., g(x[n-1])), for an f that is associative and commutative and has
/// `first` as its neutral element.
template <class T, class F, class G>
[[gnu::always_inline]] inline Vec<T> fold_down(const Down<T>& x, int64_t n, T first, const F& f, const G& g) {
  using V = Vec<T>;
  V acc[4] = {V(first), V(first), V(first), V(first)};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) acc[k] = f(acc[k], g(x.load(i + k)));
  for (; i < n; ++i) acc[0] = f(acc[0], g(x.load(i)));
  return f(f(acc[0], acc[1]), f(acc[2], acc[3]));
}

template <class T>
[[gnu::always_inline]] inline Vec<T> max_down(const Down<T>& x, int64_t n) {
  return fold_down(
      x, n, -static_cast<T>(__builtin_inf()), [](Vec<T> a, Vec<T> b) { return maximum(a, b); },
      [](Vec<T> v) { return v; });
}

/// As largest_number().
template <class T>
[[gnu::always_inline]] inline Vec<T> largest_down(const Down<T>& x, int64_t n) {
  const auto f = [](Vec<T> acc, Vec<T> v) { return larger(v, acc); };
  return fold_down(x, n, -static_cast<T>(__builtin_inf()), f, [](Vec<T> v) { return v; });
}

/// As row_mean().
template <class T>
[[gnu::always_inline]] inline Vec<T> mean_down(const Down<T>& x, int64_t n) {
  constexpr T kScale = 1 / static_cast<T>(2 * kDownSum);
  const double count = static_cast<double>(n);
  const Vec<T> mean =
      DownSums<T>(n, [&](int64_t i) { return x.load(i); }).map([count](double sum) { return sum / count; });
  const Mask<T> known = isfinite(mean);
  if (!any(!known)) return mean;
  const DownSums<T> scaled(n, [&](int64_t i) { return x.load(i) * Vec<T>(kScale); });
  return select(known, mean, scaled.map([count](double sum) { return sum / count / double{kScale}; }));
}

/// As rest_of_exponentials().
template <class T>
struct RestOfExponentials {
  double lanes[Vec<T>::size];

  [[gnu::always_inline]] RestOfExponentials(const Down<T>& x, int64_t n, Vec<T> max) {
    const DownSumPairs<T> found(n, [&](int64_t i) {
      const Vec<T> v = x.load(i);
      const Mask<T> is_max = v == max;
      return VecPair<T>{select(is_max, T(0), exp(v - max)), select(is_max, T(1), T(0))};
    });
    for (int k = 0; k < Vec<T>::size; ++k)
      lanes[k] = found.first.lanes[k] + (found.second.lanes[k] - 1);
  }
  Vec<T> as_register() const {
    T out[Vec<T>::size];
    for (int k = 0; k < Vec<T>::size; ++k) out[k] = static_cast<T>(lanes[k]);
    return Vec<T>::load(out);
  }
};

}  // namespace retrograd::cpu::RG_ISA
