// Loops over contiguous rows in vector registers, for sources that are compiled once per instruction-set
// level (see cpu/vec/vec.h).
//
//   each_register   calls a body for each register of elements of several rows
//   Sweep   maps inputs to outputs and sums terms on the way
//   Chains  folds by any function, in four chains; fold() does so for a whole row
//
// Below them are parts that several kernels share: mean and maximum of a row, and the careful forms of softmax's
// shares. A tail goes through a padded register of the same code, so that an element's bits do not depend on its
// position. Sums run in lanes of T over kChunk elements and in double beyond.
#pragma once

#include "cpu/kernels/levels/reduce_rows.h"
#include "cpu/vec/vec_math.h"

namespace retrograd::inline v0::cpu::RG_ISA {

/// A register whose first `count` lanes are p[0..count), the rest `fill`.
template <class T>
Vec<T> load_part(const T* p, int64_t count, T fill) {
  return Vec<T>(native_load_part(p, count, Vec<T>(fill).v));
}

template <class T>
void store_part(Vec<T> v, T* p, int64_t count) {
  native_store_part(p, count, v.v);
}

/// A register of rows: their elements [at, at + count).
template <class T>
struct Part {
  int64_t at, count;
  Vec<T> load(const T* row) const {
    return count == Vec<T>::size ? Vec<T>::load(row + at) : load_part(row + at, count, T(0));
  }
  void store(T* row, Vec<T> v) const {
    if (count == Vec<T>::size)
      v.store(row + at);
    else
      store_part(v, row + at, count);
  }
};

/// Calls f(part) for the registers from begin to end; the last may be partly filled, so that all elements are computed
/// by the same instructions.
template <class T, class F>
[[gnu::always_inline]] inline void each_register(int64_t begin, int64_t end, const F& f) {
  for (; begin + Vec<T>::size <= end; begin += Vec<T>::size) f(Part<T>{begin, Vec<T>::size});
  if (begin < end) f(Part<T>{begin, end - begin});
}

/// The lanes of v below `count`, zeros beyond.
template <class T>
Vec<T> keep_part(Vec<T> v, int64_t count) {
  return Vec<T>(native_keep_part(v.v, count));
}

inline double sum_lanes(Vec<double> v) { return reduce_add(v); }
inline double sum_lanes(Vec<float> v) {
  return sum_lanes(Vec<double>(native_low_half(v.v)) + Vec<double>(native_high_half(v.v)));
}

/// For each element: f(x, y, terms) reads inputs x[], sets outputs y[] and terms[]; returns the sums of the
/// terms.
template <class T, int Inputs, int Outputs, int Sums>
struct Sweep {
  double sums[Sums + 1] = {};

  template <class F>
  [[gnu::always_inline]] void run(const T* const (&in)[Inputs], T* const (&out)[Outputs + 1], int64_t n,
                                  F f) {
    for (int64_t begin = 0; begin < n; begin += kChunk)
      chunk(in, out, begin, n - begin < kChunk ? n : begin + kChunk, f);
  }

 private:
  template <class F>
  [[gnu::always_inline]] void chunk(const T* const (&in)[Inputs], T* const (&out)[Outputs + 1], int64_t i,
                                    int64_t end, F f) {
    using V = Vec<T>;
    constexpr int kChains = Outputs == 0 ? 4 : 1;  // sums alone would wait for each addition
    V x[Inputs], y[Outputs + 1], terms[Sums + 1], acc[kChains][Sums + 1];
    for (auto& chain : acc)
      for (int s = 0; s < Sums; ++s) chain[s] = T(0);
    for (; i + kChains * V::size <= end; i += kChains * V::size) {
#pragma GCC unroll 4
      for (int c = 0; c < kChains; ++c) {
        const int64_t at = i + c * V::size;
        for (int k = 0; k < Inputs; ++k) x[k] = V::load(in[k] + at);
        f(x, y, terms);
        for (int k = 0; k < Outputs; ++k) y[k].store(out[k] + at);
        for (int s = 0; s < Sums; ++s) acc[c][s] += terms[s];
      }
    }
    for (; i < end; i += V::size) {
      const int64_t count = end - i < V::size ? end - i : V::size;
      for (int k = 0; k < Inputs; ++k) x[k] = load_part(in[k] + i, count, T(0));
      f(x, y, terms);
      for (int k = 0; k < Outputs; ++k) store_part(y[k], out[k] + i, count);
      for (int s = 0; s < Sums; ++s) acc[0][s] += keep_part(terms[s], count);
    }
    for (int s = 0; s < Sums; ++s) {
      if constexpr (kChains == 4)
        sums[s] += sum_lanes((acc[0][s] + acc[1][s]) + (acc[2][s] + acc[3][s]));
      else
        sums[s] += sum_lanes(acc[0][s]);
    }
  }
};

/// What fold() has found so far, in four chains. More elements follow only after a multiple of
/// 4 * Vec<T>::size.
template <class T>
struct Chains {
  using V = Vec<T>;
  V acc[4];

  explicit Chains(T first) : acc{V(first), V(first), V(first), V(first)} {}

  template <class F, class G>
  [[gnu::always_inline]] void add(const T* x, int64_t n, F f, G g) {
    int64_t i = 0;
    for (; i + 4 * V::size <= n; i += 4 * V::size)
      for (int c = 0; c < 4; ++c) acc[c] = f(acc[c], g(V::load(x + i + c * V::size)));
    for (; i < n; i += V::size) {
      const int64_t count = n - i < V::size ? n - i : V::size;
      acc[0] = f(acc[0], g(load_part(x + i, count, x[n - 1])));
    }
  }
  template <class F>
  [[gnu::always_inline]] T result(F f) const {
    return fold_lanes<V::size / 2>(f(f(acc[0], acc[1]), f(acc[2], acc[3])), f).v[0];
  }
};

/// f(...f(first, x[0])..., x[n-1]) for an f that is associative and commutative and has `first` as its
/// neutral element; x is mapped by g.
template <class T, class F, class G>
[[gnu::always_inline]] inline T fold(const T* x, int64_t n, T first, F f, G g) {
  Chains<T> chains(first);
  chains.add(x, n, f, g);
  return chains.result(f);
}

template <class T>
T row_max(const T* x, int64_t n) {
  return fold(
      x, n, -static_cast<T>(__builtin_inf()), [](Vec<T> a, Vec<T> b) { return maximum(a, b); },
      [](Vec<T> v) { return v; });
}

/// The largest of n numbers, where NaN does not count: -inf if there is nothing else. For what finds NaN on its own.
template <class T>
T largest_number(const T* x, int64_t n) {
  const auto f = [](Vec<T> acc, Vec<T> v) { return larger(v, acc); };
  return fold(x, n, -static_cast<T>(__builtin_inf()), f, [](Vec<T> v) { return v; });
}

/// The mean of n elements as T, also where their sum leaves the range of T.
template <class T>
T row_mean(const T* x, int64_t n) {
  constexpr T kScale = 1 / static_cast<T>(2 * kChunk);  // of as many elements as lanes of T sum
  Sweep<T, 1, 0, 1> sum;
  sum.run({x}, {nullptr}, n, [](const auto& v, auto&, auto& term) { term[0] = v[0]; });
  const double mean = sum.sums[0] / static_cast<double>(n);
  if (mean - mean == 0) return static_cast<T>(mean);
  Sweep<T, 1, 0, 1> scaled;
  scaled.run({x}, {nullptr}, n, [](const auto& v, auto&, auto& term) { term[0] = v[0] * Vec<T>(kScale); });
  return static_cast<T>(scaled.sums[0] / static_cast<double>(n) / static_cast<double>(kScale));
}

/// A share exp(y) is high if it is above 1/2.
template <class T>
Mask<T> is_high_share(Vec<T> y) {
  return y > Vec<T>(static_cast<T>(-0.6931471805599453));
}
template <class T>
bool has_high_share(const T* y, int64_t n) {
  Chains<T> largest(-static_cast<T>(__builtin_inf()));
  const auto f = [](Vec<T> acc, Vec<T> v) { return larger(v, acc); };
  largest.add(y, n, f, [](Vec<T> v) { return v; });
  const auto& acc = largest.acc;
  return any(is_high_share(f(f(acc[0], acc[1]), f(acc[2], acc[3]))));
}

/// g - exp(y) * sum, what log_softmax y gives back of gradients g with that sum: of high shares by g - sum and 1 -
/// exp(y).
template <class T>
[[gnu::always_inline]] inline Vec<T> less_share(Vec<T> g, Vec<T> y, Vec<T> sum) {
  const Vec<T> plain = g - exp(y) * sum;
  const Mask<T> high = is_high_share(y);
  return any(high) ? select(high, (g - sum) - expm1(y) * sum, plain) : plain;
}

/// The sum of exp(x - max) but for one element that is the maximum: near 0 where one element is far above the others,
/// and exact there.
template <class T>
double rest_of_exponentials(const T* x, int64_t n, T max) {
  Sweep<T, 1, 0, 2> exps;
  exps.run({x}, {nullptr}, n, [m = Vec<T>(max)](const auto& v, auto&, auto& term) {
    const Mask<T> is_max = v[0] == m;
    term[0] = select(is_max, T(0), exp(v[0] - m));
    term[1] = select(is_max, T(1), T(0));
  });
  return exps.sums[0] + (exps.sums[1] - 1);
}

}  // namespace retrograd::cpu::RG_ISA
