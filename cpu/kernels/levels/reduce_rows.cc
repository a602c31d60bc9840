// Reductions of a chunk of a contiguous row of floats or doubles, and column sums, for one instruction-set
// level: see cpu/kernels/levels/reduce_rows.h.
//
// reduce() takes one chunk, reduce_rows() many short rows in one call, Pieces a chunk that comes piece by
// piece with the same bits. Sums of squares and powers that leave the range are made again, of scaled
// elements (scaled_sums.h). Columns that are reduced otherwise than by sums and products are in
// reduce_rows_down.cc, integers in reduce_rows_integers.cc. Start reading at reduce(). Only plain loops here:
// nothing of the standard library, no throw (tools/isa.bzl says why).
#include "cpu/kernels/levels/reduce_rows.h"

#include "cpu/kernels/levels/row_lanes.h"
#include "cpu/kernels/levels/scaled_sums.h"
#include "engine/prefetch.h"
#include "ops/convert.h"

namespace retrograd::inline v0::cpu::RG_ISA {

// In cpu/kernels/levels/reduce_rows_down.cc.
template <class T>
void reduce_columns(const T* x, int64_t rows, int64_t stride, int64_t columns, Reduction kind, double p,
                    Partial<double>* out);

namespace {

template <class T, class F>
[[gnu::always_inline]] inline double sum_of(const T* x, int64_t n, F f) {
  Sweep<T, 1, 0, 1> sweep;
  sweep.run({x}, {nullptr}, n, [&](const auto& v, auto&, auto& term) { term[0] = f(v[0]); });
  return sweep.sums[0];
}

// Interleaved products in double: wide enough that partial products of floats neither overflow nor vanish early. What
// the conversions take is hidden only while memory comes ahead of them: kAhead elements.
constexpr int kProducts = 8;
constexpr int64_t kAhead = 2048;

inline Vec<double> load_wide(const double* p) { return Vec<double>::load(p); }
inline Vec<double> load_wide(const float* p) { return Vec<double>(native_load_wide(p)); }
inline Vec<double> load_wide_part(const double* p, int64_t count) { return load_part(p, count, 1.0); }
inline Vec<double> load_wide_part(const float* p, int64_t count) {
  return widen(load_part(p, count, 1.0f)).low;
}

template <class T>
[[gnu::always_inline]] inline double product(const T* x, int64_t n) {
  constexpr int64_t size = Vec<double>::size, step = kProducts * size;
  Vec<double> p[kProducts];
  for (Vec<double>& chain : p) chain = 1.0;
  int64_t i = 0;
  for (; i + step <= n; i += step) {
    prefetch<CacheLevel::first>(x + i + kAhead, step * static_cast<int64_t>(sizeof(T)));
#pragma GCC unroll 8
    for (int c = 0; c < kProducts; ++c) p[c] *= load_wide(x + i + c * size);
  }
#pragma GCC unroll 8
  for (int c = 0; c < kProducts; ++c, i += size)
    if (i + size <= n)
      p[c] *= load_wide(x + i);
    else if (i < n)
      p[c] *= load_wide_part(x + i, n - i);
  const Vec<double> all = ((p[0] * p[1]) * (p[2] * p[3])) * ((p[4] * p[5]) * (p[6] * p[7]));
  return fold_lanes<size / 2>(all, [](Vec<double> a, Vec<double> b) { return a * b; }).v[0];
}

// The first place of `value`, or of a NaN when that is what it is.
template <class T>
int64_t find(const T* x, int64_t n, T value) {
  using V = Vec<T>;
  int64_t i = 0;
  const bool nan = value != value;
  for (; i + V::size <= n; i += V::size) {
    const V v = V::load(x + i);
    if (any(nan ? isnan(v) : v == V(value))) break;
  }
  while (i < n && !(nan ? x[i] != x[i] : x[i] == value)) ++i;
  return i;
}

template <class T>
T largest_distance(const T* x, int64_t n, T shift) {
  return fold(
      x, n, T(0), [](Vec<T> a, Vec<T> b) { return maximum(a, b); },
      [shift = Vec<T>(shift)](Vec<T> v) { return abs(v - shift); });
}

// Whether sums of squares or powers are made again, of scaled elements: see cpu/kernels/levels/scaled_sums.h.
template <class T>
bool is_rescaled(double sum, const T* x, int64_t n, T shift) {
  return !is_in_range<T>(sum) && (sum != 0 || largest_distance(x, n, shift) != 0);
}

template <class T>
void powers(const T* x, int64_t n, double p, double sum, Partial<double>* out) {
  out->value = sum;
  if (!is_rescaled(sum, x, n, T(0))) return;
  const ScaledSums found = scaled_sums(x, 1, n, 0, p);
  if (!found.is_of_use) return;
  out->value = found.powers;
  out->exponent = found.exponent;
}

// The mean is rounded to T before it is subtracted, and what that loses is made up for.
template <class T>
void moments(const T* x, int64_t n, Partial<double>* out) {
  const T center = row_mean(x, n);
  const Vec<T> shift = center;
  Sweep<T, 1, 0, 2> sweep;
  sweep.run({x}, {nullptr}, n, [&](const auto& v, auto&, auto& term) {
    term[0] = v[0] - shift;
    term[1] = term[0] * term[0];
  });
  double sum = sweep.sums[0], squares = sweep.sums[1];
  if (is_rescaled(squares, x, n, center)) {
    const ScaledSums found = scaled_sums(x, 1, n, static_cast<double>(center), 0);
    if (found.is_of_use) {
      sum = found.sum;
      squares = found.squares;
      out->exponent = found.exponent;
    }
  }
  const double rest = sum / static_cast<double>(n);
  out->value = static_cast<double>(center) + ops::scaled_by_exponent(rest, out->exponent);
  out->second = squares - rest * sum;
}

template <class T>
void log_sum_exp_parts(const T* x, int64_t n, Partial<double>* out) {
  const T m = row_max(x, n);
  out->value = static_cast<double>(m);
  if (m - m == 0) out->second = rest_of_exponentials(x, n, m);
}

template <class T>
void reduce(const T* x, int64_t n, Reduction kind, double p, Partial<double>* out) {
  using V = Vec<T>;
  const T inf = static_cast<T>(__builtin_inf());
  const auto self = [](V v) { return v; };
  const auto magnitude = [](V v) { return abs(v); };
  const auto larger = [](V a, V b) { return maximum(a, b); };
  const auto smaller = [](V a, V b) { return minimum(a, b); };
  out->count = n;
  T extreme = 0;
  switch (kind) {
    case Reduction::sum: out->value = sum_of(x, n, self); return;
    case Reduction::abs_sum: out->value = sum_of(x, n, magnitude); return;
    case Reduction::square_sum: return powers(x, n, 2, sum_of(x, n, [](V v) { return v * v; }), out);
    case Reduction::power_sum:
      return powers(x, n, p, sum_of(x, n, [e = V(static_cast<T>(p))](V v) { return pow(abs(v), e); }), out);
    case Reduction::nonzero:
      out->value = sum_of(x, n, [](V v) { return select(v != V(T(0)), V(T(1)), V(T(0))); });
      return;
    case Reduction::prod: out->value = product(x, n); return;
    case Reduction::moments: return moments(x, n, out);
    case Reduction::logsumexp: return log_sum_exp_parts(x, n, out);
    case Reduction::abs_max: out->value = fold(x, n, T(0), larger, magnitude); return;
    case Reduction::abs_min: out->value = fold(x, n, inf, smaller, magnitude); return;
    case Reduction::max:
    case Reduction::argmax: extreme = fold(x, n, -inf, larger, self); break;
    case Reduction::min:
    case Reduction::argmin: extreme = fold(x, n, inf, smaller, self); break;
  }
  out->value = static_cast<double>(extreme);
  if (kind == Reduction::argmax || kind == Reduction::argmin) out->index = find(x, n, extreme);
}

// Many short rows in one call.
template <class T>
void reduce_rows(const T* x, int64_t rows, int64_t stride, int64_t n, Reduction kind, double p,
                 Partial<double>* out) {
  const auto each = [&](const auto& value) {
    for (int64_t i = 0; i < rows; ++i) {
      out[i].value = value(x + i * stride);
      out[i].count = n;
    }
  };
  if (kind == Reduction::sum)
    each([n](const T* row) { return sum_of(row, n, [](Vec<T> v) { return v; }); });
  else if (kind == Reduction::prod)
    each([n](const T* row) { return product(row, n); });
  else
    for (int64_t i = 0; i < rows; ++i) reduce(x + i * stride, n, kind, p, out + i);
}

// A chunk that comes in pieces: chains of registers lie in memory between the pieces. The sums of Sweep, and
// those of fold().
template <class T>
struct Pieces {
  using V = Vec<T>;
  static_assert(4 * V::size <= kPieceLanes && kPieceLanes % (4 * V::size) == 0);

  static V larger(V a, V b) { return maximum(a, b); }
  static V smaller(V a, V b) { return minimum(a, b); }

  static void begin(Reduction kind, T* lanes) {
    const T inf = static_cast<T>(__builtin_inf());
    const V first = kind == Reduction::max ? -inf : kind == Reduction::min ? inf : T(0);
    for (int c = 0; c < 4; ++c) first.store(lanes + c * V::size);
  }
  static void add(const T* x, int64_t n, Reduction kind, T* lanes) {
    Chains<T> chains(0);
    const auto self = [](V v) { return v; };
    for (int c = 0; c < 4; ++c) chains.acc[c] = V::load(lanes + c * V::size);
    if (kind == Reduction::max)
      chains.add(x, n, larger, self);
    else if (kind == Reduction::min)
      chains.add(x, n, smaller, self);
    else
      add_to_sums(x, n, chains.acc);
    for (int c = 0; c < 4; ++c) chains.acc[c].store(lanes + c * V::size);
  }
  static void end(const T* lanes, Reduction kind, Partial<double>* out) {
    Chains<T> chains(0);
    for (int c = 0; c < 4; ++c) chains.acc[c] = V::load(lanes + c * V::size);
    const V* acc = chains.acc;
    out->value = kind == Reduction::max   ? static_cast<double>(chains.result(larger))
                 : kind == Reduction::min ? static_cast<double>(chains.result(smaller))
                                          : sum_lanes((acc[0] + acc[1]) + (acc[2] + acc[3]));
  }

 private:
  static void add_to_sums(const T* x, int64_t n, V* acc) {
    int64_t i = 0;
    for (; i + 4 * V::size <= n; i += 4 * V::size)
      for (int c = 0; c < 4; ++c) acc[c] += V::load(x + i + c * V::size);
    for (; i < n; i += V::size) acc[0] += load_part(x + i, n - i < V::size ? n - i : V::size, T(0));
  }
};

// Columns of a block: long lines are read, and the running sums stay in the first-level cache.
constexpr int64_t kSumColumns = 1024;

// Eight rows are added pairwise before they meet the running sums.
template <class T, class From>
void add_rows(const From* x, int64_t rows, int64_t stride, int64_t columns, T* sums) {
  int64_t i = 0;
  for (; i + kSumStep <= rows; i += kSumStep) {
    const From *a = x + i * stride, *b = a + 4 * stride;
    const auto two = [&](const From* p) { return convert<T>(p[0]) + convert<T>(p[stride]); };
    for (int64_t j = 0; j < columns; ++j)
      sums[j] += (two(a + j) + two(a + j + 2 * stride)) + (two(b + j) + two(b + j + 2 * stride));
  }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) sums[j] += convert<T>(x[i * stride + j]);
}

// Every kSumRows rows the running sums of a block of columns go into double.
template <class T, class From>
void sum_block(const From* x, int64_t rows, int64_t stride, int64_t columns, double* out) {
  T sums[kSumColumns];
  for (int64_t first = 0; first < rows; first += kSumRows) {
    for (int64_t j = 0; j < columns; ++j) sums[j] = 0;
    add_rows<T>(x + first * stride, rows - first < kSumRows ? rows - first : kSumRows, stride, columns, sums);
    for (int64_t j = 0; j < columns; ++j) out[j] += static_cast<double>(sums[j]);
  }
}

template <class T, class From>
void sum_columns(const From* x, int64_t rows, int64_t stride, int64_t columns, double* out) {
  for (int64_t j = 0; j < columns; j += kSumColumns)
    sum_block<T>(x + j, rows, stride, columns - j < kSumColumns ? columns - j : kSumColumns, out + j);
}

// Four rows meet before the running products: in double no product of four floats is out of range.
template <class T>
void multiply_block(const T* x, int64_t rows, int64_t stride, int64_t columns, double* __restrict out) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const T* a = x + i * stride;
    for (int64_t j = 0; j < columns; ++j)
      out[j] *= (static_cast<double>(a[j]) * static_cast<double>(a[j + stride])) *
                (static_cast<double>(a[j + 2 * stride]) * static_cast<double>(a[j + 3 * stride]));
  }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) out[j] *= static_cast<double>(x[i * stride + j]);
}

template <class T>
void multiply_columns(const T* x, int64_t rows, int64_t stride, int64_t columns, double* out) {
  for (int64_t j = 0; j < columns; j += kSumColumns)
    multiply_block(x + j, rows, stride, columns - j < kSumColumns ? columns - j : kSumColumns, out + j);
}

}  // namespace

template <class T>
const ReduceTable<T>& reduce_table() {
  static constexpr ReduceTable<T> table{
      reduce<T>,      reduce_columns<T>, sum_columns<T, T>,   Pieces<T>::begin,         Pieces<T>::add,
      Pieces<T>::end, reduce_rows<T>,    multiply_columns<T>, sum_columns<T, BFloat16>, add_rows<T, T>};
  return table;
}
template const ReduceTable<float>& reduce_table<float>();
template const ReduceTable<double>& reduce_table<double>();

}  // namespace retrograd::cpu::RG_ISA
