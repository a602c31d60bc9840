// Rows of attention for one instruction-set level: see cpu/kernels/levels/attention_rows.h.
//
// Rows are short and their lengths differ, so each is taken in pieces of kAttentionPad elements (Piece, a few
// registers), and all rows of a block in equally many. Up to kRowsAtOnce rows are computed side by side (Rows), to
// hide each other's latency. Sums run in registers of T over kSumChunk elements and in double beyond. Start reading
// at weights(). Only plain loops here: nothing of the standard library, no throw (tools/isa.bzl says why).
#include "cpu/kernels/levels/attention_rows.h"

#include "cpu/kernels/levels/row_lanes.h"
#include "cpu/vec/vec_math.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

// Rows side by side are limited by bytes per row: more would leave the first-level cache from pass to pass.
constexpr int64_t kNearBytes = 4096;
constexpr int64_t kSumChunk = 1024;  // elements summed in registers of T; beyond, in double

// Rows are short and their lengths differ, so each is taken in pieces of kAttentionPad elements, and all of a block in
// equally many: loops end where the last ones did, which branch prediction learns. A piece is a few registers.
template <class T>
constexpr int kRegisters = static_cast<int>(kAttentionPad) / Vec<T>::size;

// Rows computed side by side: with those of a piece, eight registers that do not wait for each other.
template <class T>
constexpr int kRowsAtOnce = kRegisters<T> < 4 ? 4 : 8 / kRegisters<T>;

template <class T>
struct Piece {
  Vec<T> v[kRegisters<T>];

  [[gnu::always_inline]] static Piece load(const T* x) {
    Piece p;
#pragma GCC unroll 8
    for (int i = 0; i < kRegisters<T>; ++i) p.v[i] = Vec<T>::load(x + i * Vec<T>::size);
    return p;
  }
  [[gnu::always_inline]] void store(T* x) const {
#pragma GCC unroll 8
    for (int i = 0; i < kRegisters<T>; ++i) v[i].store(x + i * Vec<T>::size);
  }
  [[gnu::always_inline]] Piece minus(T x) const {
    Piece p;
#pragma GCC unroll 8
    for (int i = 0; i < kRegisters<T>; ++i) p.v[i] = v[i] - x;
    return p;
  }
  [[gnu::always_inline]] Piece times(const Piece& x) const {
    Piece p;
#pragma GCC unroll 8
    for (int i = 0; i < kRegisters<T>; ++i) p.v[i] = v[i] * x.v[i];
    return p;
  }
  /// The elements before `count`, and `other` in place of those after it.
  [[gnu::always_inline]] Piece before(int64_t count, T other) const {
    alignas(64) static constexpr T kPlaces[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    static_assert(sizeof(kPlaces) / sizeof(T) == kAttentionPad);
    const Vec<T> end(static_cast<T>(count));
    Piece p;
#pragma GCC unroll 8
    for (int i = 0; i < kRegisters<T>; ++i)
      p.v[i] = select(Vec<T>::load(kPlaces + i * Vec<T>::size) < end, v[i], other);
    return p;
  }
};

// How the rows of a block are taken: pieces before `whole` lie within all of them, others up to `end` partly.
struct Extent {
  int64_t whole, end;

  explicit Extent(const ScoreBlock& block)
      : whole((block.causal && block.first_keys < block.keys ? block.first_keys : block.keys) /
              kAttentionPad * kAttentionPad),
        end((block.keys + kAttentionPad - 1) / kAttentionPad * kAttentionPad) {}
};

// Rows that are computed side by side, to hide each other's latency.
template <class T, int N>
struct Rows {
  T* x;
  int64_t width;
  int64_t keys[N];

  Rows(T* all, const ScoreBlock& block, int64_t first) : x(all + first * block.width), width(block.width) {
    for (int n = 0; n < N; ++n) keys[n] = block.row_keys(first + n);
  }
  T* row(int n) const { return x + n * width; }
};

// f(n, i, mask) for the pieces of [begin, end) of rows n; mask(p, other) puts `other` after the row.
template <class T, int N, class F>
[[gnu::always_inline]] inline void each_piece(const Rows<T, N>& rows, const Extent& extent, int64_t begin,
                                              int64_t end, const F& f) {
  int64_t i = begin;
  for (const int64_t whole = extent.whole < end ? extent.whole : end; i < whole; i += kAttentionPad)
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) f(n, i, [](const Piece<T>& p, T) { return p; });
  for (; i < end; i += kAttentionPad)
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n)
      f(n, i, [count = rows.keys[n] - i](const Piece<T>& p, T other) { return p.before(count, other); });
}

// The largest score of each row, -inf without scores. A NaN may be left out: the sum of the row's exponentials is NaN
// then, whatever is subtracted.
template <class T, int N>
[[gnu::always_inline]] inline void find_largest(const Rows<T, N>& rows, const Extent& extent, T* largest) {
  constexpr T none = -static_cast<T>(__builtin_inf());
  Vec<T> most[N];
#pragma GCC unroll 8
  for (int n = 0; n < N; ++n) most[n] = none;
  each_piece(
      rows, extent, 0, extent.end, [&](int n, int64_t i, auto mask) __attribute__((always_inline)) {
        const Piece<T> p = mask(Piece<T>::load(rows.row(n) + i), none);
#pragma GCC unroll 8
        for (const Vec<T>& v : p.v) most[n] = larger(most[n], v);
      });
#pragma GCC unroll 8
  for (int n = 0; n < N; ++n)
    largest[n] = fold_lanes<Vec<T>::size / 2>(most[n], [](Vec<T> a, Vec<T> b) { return larger(a, b); }).v[0];
}

// Whether the fast exponential suffices is tested once for a piece.
template <class T>
[[gnu::always_inline]] inline Piece<T> exp(const Piece<T>& x) {
  Piece<T> e;
  if constexpr (!kScales) {
    constexpr T normal = ExpLogConstants<T>::exp_normal;
    Mask<T> near = abs(x.v[0]) <= normal;
#pragma GCC unroll 8
    for (const Vec<T>& v : x.v) near = near & (abs(v) <= normal);
    if (all(near)) {
#pragma GCC unroll 8
      for (int i = 0; i < kRegisters<T>; ++i) {
        const ExpParts<T> parts(x.v[i]);
        e.v[i] = scale_number(1 + parts.fraction, parts.n);
      }
      return e;
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRegisters<T>; ++i) e.v[i] = exp(x.v[i]);
  return e;
}

// x = exp(x - m) for rows of scores, zeros after them; their sums.
template <class T, int N>
[[gnu::always_inline]] inline void exps(const Rows<T, N>& rows, const Extent& extent, const T* m, T* sums) {
  double sum[N] = {};
  for (int64_t begin = 0; begin < extent.end; begin += kSumChunk) {
    const int64_t end = extent.end - begin < kSumChunk ? extent.end : begin + kSumChunk;
    Vec<T> total[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) total[n] = T(0);
    each_piece(
        rows, extent, begin, end, [&](int n, int64_t i, auto mask) __attribute__((always_inline)) {
          T* const x = rows.row(n) + i;
          const Piece<T> p = mask(exp(mask(Piece<T>::load(x).minus(m[n]), T(0))), T(0));
          p.store(x);
#pragma GCC unroll 8
          for (const Vec<T>& v : p.v) total[n] += v;
        });
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) sum[n] += static_cast<double>(reduce_add(total[n]));
  }
  for (int n = 0; n < N; ++n) sums[n] = static_cast<T>(sum[n]);
}

// lse holds the largest scores and becomes lse; factor holds the sums and becomes their reciprocals.
template <class T>
void finish(T* lse, T* factor, int64_t rows) {
  for (int64_t r = 0; r < rows; r += Vec<T>::size) {
    const int64_t count = rows - r < Vec<T>::size ? rows - r : Vec<T>::size;
    const Vec<T> m = load_part(lse + r, count, T(0)), sum = load_part(factor + r, count, T(1));
    store_part(m + log(sum), lse + r, count);
    store_part(select(sum == 0, 0, 1 / sum), factor + r, count);
  }
}

// f(rows, first) for each few rows of a block.
template <class T, class F>
[[gnu::always_inline]] inline void by_rows(T* x, const ScoreBlock& block, const F& f) {
  int64_t r = 0;
  if (block.keys <= kNearBytes / static_cast<int64_t>(sizeof(T)))
    for (; r + kRowsAtOnce<T> <= block.rows; r += kRowsAtOnce<T>) f(Rows<T, kRowsAtOnce<T>>(x, block, r), r);
  for (; r < block.rows; ++r) f(Rows<T, 1>(x, block, r), r);
}

template <class T>
void weights(T* x, const ScoreBlock& block, T* lse, T* factor) {
  const Extent extent(block);
  by_rows(x, block, [&](const auto& rows, int64_t first) {
    find_largest(rows, extent, lse + first);
    exps(rows, extent, lse + first, factor + first);
  });
  finish(lse, factor, block.rows);
}

template <class T>
void gradients(T* x, T* dp, const ScoreBlock& block, const T* lse, const T* delta) {
  const Extent extent(block);
  by_rows(x, block, [&](const auto& rows, int64_t first) {
    T* const grads = dp + first * block.width;
    each_piece(
        rows, extent, 0, extent.end, [&](int n, int64_t i, auto mask) __attribute__((always_inline)) {
          T *const score = rows.row(n) + i, *const grad = grads + n * block.width + i;
          const Piece<T> p = exp(mask(Piece<T>::load(score).minus(lse[first + n]), T(0))),
                         g = Piece<T>::load(grad).minus(delta[first + n]);
          mask(p, T(0)).store(score);
          mask(p.times(g), T(0)).store(grad);
        });
  });
}

template <class T>
void scale_rows(T* x, int64_t x_row, int64_t rows, int64_t n, const T* factor) {
  for (; rows > 0; --rows, x += x_row, ++factor) {
    int64_t i = 0;
    for (; i + Vec<T>::size <= n; i += Vec<T>::size) (Vec<T>::load(x + i) * *factor).store(x + i);
    for (; i < n; ++i) x[i] *= *factor;
  }
}

template <class T>
void inner(const T* a, int64_t a_row, const T* b, int64_t b_row, int64_t rows, int64_t n, T* out) {
  for (; rows > 0; --rows, a += a_row, b += b_row, ++out) {
    Vec<T> total(T(0));
    int64_t i = 0;
    for (; i + Vec<T>::size <= n; i += Vec<T>::size) total += Vec<T>::load(a + i) * Vec<T>::load(b + i);
    T sum = reduce_add(total);
    for (; i < n; ++i) sum += a[i] * b[i];
    *out = sum;
  }
}

template <class T>
constexpr AttentionRowTable<T> table{weights<T>, gradients<T>, scale_rows<T>, inner<T>};

}  // namespace

template <class T>
const AttentionRowTable<T>& attention_row_table() {
  return table<T>;
}
template const AttentionRowTable<float>& attention_row_table<float>();
template const AttentionRowTable<double>& attention_row_table<double>();

}  // namespace retrograd::cpu::RG_ISA
