// Rows in a kernel: elements of a row in packs, the threads of a row (its team), and sums over a team.
//
// DenseRows reads and writes a whole pack; StridedRows handles any layout and element type, with the same elements in a
// pack. So a kernel over them is written once, and a row's bits do not depend on which of the two is used.
//
// Rows are read again for each pass; a row that a block works on is in its cache. Sums are in the compute type within a
// pack and in double beyond, merged in an order that depends only on the division; there are no atomics.
#pragma once

#include "cuda/kernels/launch.h"
// Included after it, since they need RG_TARGET.
#include "cuda/kernels/rows_call.h"
#include "cuda/kernels/strided.h"
#include "ops/scalar_math.h"

namespace retrograd::inline v0::cuda::RG_TARGET {

/// Elements of a pack, by compute type.
template <class C>
inline constexpr int kPack = sizeof(C) == 8 ? 2 : 4;

/// Contiguous rows of elements T, computed in C.
template <class T>
class DenseRows {
 public:
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  static constexpr int N = kPack<C>;

  explicit DenseRows(const RowSide& side) : data_(static_cast<T*>(side.data)), length_(side.along.numel) {}

  struct Row {
    T* p;
    RG_HD C at(int64_t i) const { return converted<C>(p[i]); }
    /// Elements [i, i + N), i a multiple of N; returns how many exist.
    RG_HD int read(int64_t i, C (&v)[N]) const {
      const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(p + i);
      for (int k = 0; k < N; ++k) v[k] = converted<C>(pack.v[k]);
      return N;
    }
    RG_HD void write(int64_t i, const C (&v)[N]) const {
      Pack<T, N> pack;
      for (int k = 0; k < N; ++k) pack.v[k] = converted<T>(v[k]);
      *reinterpret_cast<Pack<T, N>*>(p + i) = pack;
    }
  };
  RG_HD Row row(int64_t r) const { return {data_ + r * length_}; }
  RG_HD bool exists() const { return data_ != nullptr; }

 private:
  T* data_;
  int64_t length_;
};

/// Rows of any elements in any layout.
template <class Computed>
class StridedRows {
 public:
  using C = Computed;
  static constexpr int N = kPack<C>;

  explicit StridedRows(const RowSide& side)
      : data_(side.data), element_(side.element), rows_(grid_of(side.rows)), along_(grid_of(side.along)) {}

  struct Row {
    const StridedRows& of;
    int64_t start;
    RG_HD C at(int64_t i) const {
      return load<C>(of.data_, of.element_, start + Offsets<1>(of.along_, i)[0]);
    }
    RG_HD void put(int64_t i, C v) const {
      store<C>(of.data_, of.element_, start + Offsets<1>(of.along_, i)[0], v);
    }
    RG_HD int read(int64_t i, C (&v)[N]) const {
      const int64_t rest = of.along_.numel - i;
      for (int k = 0; k < N; ++k) v[k] = k < rest ? at(i + k) : C(0);
      return rest < N ? static_cast<int>(rest) : N;
    }
    RG_HD void write(int64_t i, const C (&v)[N]) const {
      for (int k = 0; k < N; ++k)
        if (i + k < of.along_.numel) put(i + k, v[k]);
    }
  };
  RG_HD Row row(int64_t r) const { return {*this, Offsets<1>(rows_, r)[0]}; }
  RG_HD bool exists() const { return data_ != nullptr; }

 private:
  void* data_;
  Element element_;
  StridedGrid<1> rows_, along_;
};

/// The threads that share a row, from the view of one of them. Threads of rows beyond the last take part, with no
/// elements.
struct Team {
  int thread, lane, lanes;
  bool rows_first;
  int64_t row, begin, end, step;  // its packs: begin, begin + step, ... below end

  /// N: elements of a pack.
  template <int N>
  __device__ static Team of(const RowCut& cut) {
    Team t;
    const int rows_of_block = kThreads / cut.lanes;
    t.thread = static_cast<int>(threadIdx.x);
    t.lanes = cut.lanes;
    t.rows_first = cut.rows_first;
    t.lane = t.rows_first ? t.thread / rows_of_block : t.thread % cut.lanes;
    t.row = static_cast<int64_t>(blockIdx.x) * rows_of_block +
            (t.rows_first ? t.thread % rows_of_block : t.thread / cut.lanes);
    const int64_t first = blockIdx.y * cut.part, last = first + cut.part;
    t.step = int64_t{t.lanes} * N;
    t.begin = first + int64_t{t.lane} * N;
    t.end = t.row >= cut.rows ? t.begin : last < cut.length ? last : cut.length;
    return t;
  }
  /// An existing row, to read from if this one does not exist.
  __device__ int64_t safe_row(const RowCut& cut) const { return row < cut.rows ? row : 0; }
};

/// f(..., x) over all threads of a team, the same in each of them. Called by all threads of the block.
template <class V, class F>
__device__ V over_team(const Team& team, V mine, F f) {
  __shared__ V found[kThreads];
  if (!team.rows_first)
    for (int half = (team.lanes < 32 ? team.lanes : 32) / 2; half > 0; half /= 2)
      mine = f(mine, __shfl_xor_sync(~0u, mine, half));
  if (!team.rows_first && team.lanes <= 32) return mine;
  found[team.thread] = mine;
  __syncthreads();
  const int first = team.rows_first ? team.thread % 32 : 0;
  V all = found[first];
  for (int w = 1; w < kThreads / 32; ++w) all = f(all, found[first + 32 * w]);
  __syncthreads();
  return all;
}

__device__ inline double sum_over_team(const Team& team, double mine) {
  return over_team(team, mine, [](double a, double b) { return a + b; });
}

template <class C>
RG_HD inline C exponential_less_one(C x) {
  return scalar::expm1(scalar::Lane<C>(x)).v;
}

template <class C>
RG_HD inline C exponential(C x) {
  return scalar::exp(scalar::Lane<C>(x)).v;
}

/// The largest element of a team's row; NaN if there is one.
template <class Rows>
__device__ typename Rows::C row_max(const Team& team, const typename Rows::Row& x) {
  using C = typename Rows::C;
  const auto larger = [](C a, C b) { return scalar::maximum(scalar::Lane<C>(a), scalar::Lane<C>(b)).v; };
  C max = -static_cast<C>(scalar::kInfinity);
  for (int64_t i = team.begin; i < team.end; i += team.step) {
    C v[Rows::N];
    const int count = x.read(i, v);
    for (int k = 0; k < Rows::N; ++k)
      if (k < count) max = larger(max, v[k]);
  }
  return over_team(team, max, larger);
}

/// term(x) of the elements of a team's row, summed; in C over a pack.
template <class Rows, class Term>
__device__ double row_sum(const Team& team, const typename Rows::Row& x, const Term& term) {
  using C = typename Rows::C;
  double sum = 0;
  for (int64_t i = team.begin; i < team.end; i += team.step) {
    C v[Rows::N], pack = 0;
    const int count = x.read(i, v);
    for (int k = 0; k < Rows::N; ++k)
      if (k < count) pack += term(v[k]);
    sum += static_cast<double>(pack);
  }
  return sum_over_team(team, sum);
}

/// log(sum(exp(x - max))) of a team's row, exact near 0; NaN where the largest element is infinite.
template <class Rows>
__device__ double log_sum(const Team& team, const typename Rows::Row& x, typename Rows::C max) {
  using C = typename Rows::C;
  const double smaller =
      row_sum<Rows>(team, x, [max](C v) { return v == max ? C(0) : exponential(v - max); });
  const double equal = row_sum<Rows>(team, x, [max](C v) { return v == max ? C(1) : C(0); });
  return ::log1p(smaller + (equal - 1)) + static_cast<double>(max - max);
}

/// The sums of a row whose parts have been summed.
__device__ inline Pair sum_of_parts(const Team& team, const Pair* parts, int count) {
  Pair mine{0, 0};
  for (int s = team.lane; s < count; s += team.lanes) {
    mine.a += parts[s].a;
    mine.b += parts[s].b;
  }
  return {sum_over_team(team, mine.a), sum_over_team(team, mine.b)};
}

inline Shape3 row_shape(const RowCut& cut) {
  const int64_t rows_of_block = kThreads / cut.lanes;
  return {static_cast<unsigned>((cut.rows + rows_of_block - 1) / rows_of_block),
          static_cast<unsigned>(cut.splits)};
}

/// Calls f<Rows>() with the class of rows for sides of one element type that are all dense, or not.
template <class F>
void with_rows(Element element, bool is_dense, const F& f) {
  if (element == Element::f64) {
    if (is_dense) return f.template operator()<DenseRows<double>>();
    return f.template operator()<StridedRows<double>>();
  }
  if (is_dense && element == Element::f32) return f.template operator()<DenseRows<float>>();
  if (is_dense && element == Element::f16) return f.template operator()<DenseRows<Half>>();
  if (is_dense && element == Element::bf16) return f.template operator()<DenseRows<BFloat16>>();
  f.template operator()<StridedRows<float>>();
}

}  // namespace retrograd::cuda::RG_TARGET
