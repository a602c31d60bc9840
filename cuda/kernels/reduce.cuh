// What a thread of a reduction does, but for where the elements come from: its share of a row, how elements
// and parts are merged, which number a row gives. For the kernels of single reductions
// (cuda/kernels/reduce.cu) and for those of fused groups (cuda/fusion/fused.cuh), which merge in the same
// order and therefore give the same bits.
//
//   const RowPart part(call);                                        // of this thread
//   Partial<double> mine = nothing<Reduction::sum, double>();
//   for (int64_t i = part.begin; i < part.end; i += call.lanes)
//     merge<Reduction::sum>(mine, of_one<Reduction::sum>(element i of row part.row, i, call.parameter));
//   end_row<Reduction::sum>(call, call.finish, part, found, mine);   // all threads; found: shared memory
#pragma once

#include "cuda/kernels/elements.h"
#include "cuda/kernels/reduce_call.h"
#include "ops/accumulated.h"
#include "ops/scalar_math.h"

namespace retrograd::cuda::RG_TARGET {

constexpr bool is_extreme(Reduction kind) { return kind >= Reduction::max && kind <= Reduction::abs_min; }
constexpr bool takes_larger(Reduction kind) { return kind == Reduction::max || kind == Reduction::abs_max; }
constexpr bool is_of_magnitude(Reduction kind) {
  return kind == Reduction::abs_sum || kind == Reduction::power_sum || kind == Reduction::abs_max ||
         kind == Reduction::abs_min;
}

template <Reduction kind, class V>
RG_HD Partial<V> nothing() {
  Partial<V> p{0, 0, 0, 0};
  if constexpr (kind == Reduction::prod) p.value = 1;
  if constexpr (kind == Reduction::logsumexp) p.value = static_cast<V>(-scalar::kInfinity);
  if constexpr (kind == Reduction::moments) p.value = static_cast<V>(scalar::kInfinity - scalar::kInfinity);
  return p;
}

// Whether b is the extreme rather than a: of two NaN, or of equal values, the first.
template <Reduction kind, class V>
RG_HD bool beats(const Partial<V>& b, const Partial<V>& a) {
  const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  if (a_is_nan || b_is_nan) return b_is_nan && (!a_is_nan || b.index < a.index);
  if (a.value == b.value) return b.index < a.index;
  return takes_larger(kind) ? b.value > a.value : b.value < a.value;
}

// Chan, Golub and LeVeque's formula for the moments of a union.
template <class V>
RG_HD void merge_moments(Partial<V>& a, const Partial<V>& b) {
  const double n = static_cast<double>(a.count + b.count), share = static_cast<double>(b.count) / n;
  const double delta = b.value - a.value;
  a.value += delta * share;
  a.second += b.second + delta * delta * static_cast<double>(a.count) * share;
}

// `second` is the sum of exp(x - value) but for one element that is the maximum: exact where it is near 0. Brought to the larger of the two.
template <class V>
RG_HD void merge_exponentials(Partial<V>& a, const Partial<V>& b) {
  if (a.value == b.value) {
    a.second += b.second + 1;
    return;
  }
  const bool a_is_high = b.value < a.value || a.value != a.value;
  const Partial<V> high = a_is_high ? a : b, low = a_is_high ? b : a;
  a.second = high.second + (low.second + 1) * ::exp(low.value - high.value);
  a.value = high.value;
}

template <Reduction kind, class V>
RG_HD void merge(Partial<V>& a, const Partial<V>& b) {
  if (b.count == 0) return;
  if (a.count == 0) {
    a = b;
    return;
  }
  if constexpr (is_extreme(kind)) {
    if (beats<kind>(b, a)) {
      a.value = b.value;
      a.index = b.index;
    }
  } else if constexpr (kind == Reduction::prod) {
    a.value *= b.value;
  } else if constexpr (kind == Reduction::moments) {
    merge_moments(a, b);
  } else if constexpr (kind == Reduction::logsumexp) {
    merge_exponentials(a, b);
  } else {
    a.value += b.value;
  }
  a.count += b.count;
}

// The Partial of the element x alone.
template <Reduction kind, class C>
RG_HD Partial<typename Accumulated<C>::Type> of_one(C x, int64_t index, double p) {
  using V = typename Accumulated<C>::Type;
  V v = static_cast<V>(x);
  if constexpr (is_of_magnitude(kind)) v = v < 0 ? -v : v;
  if constexpr (kind == Reduction::square_sum) v *= v;
  if constexpr (kind == Reduction::power_sum) v = static_cast<V>(::pow(static_cast<double>(v), p));
  if constexpr (kind == Reduction::nonzero) v = x != 0;
  return {v, 0, index, 1};
}

template <class V>
RG_HD V finished(const ReduceCall& call, Finish finish, const Partial<V>& p) {
  const double n = static_cast<double>(call.along.numel), value = static_cast<double>(p.value);
  const double freedom = n - call.parameter, nan = scalar::kInfinity - scalar::kInfinity;
  // Of numbers that are not all finite there is none.
  const double variance =
      value - value == 0 ? static_cast<double>(p.second) / (freedom > 0 ? freedom : 0) : nan;
  switch (finish) {
    case Finish::value: return p.value;
    case Finish::mean: return static_cast<V>(value / n);
    case Finish::index: return static_cast<V>(p.index);
    case Finish::variance: return static_cast<V>(variance);
    case Finish::deviation: return static_cast<V>(::sqrt(variance));
    case Finish::logsumexp:
      return value - value == 0 ? static_cast<V>(value + ::log1p(static_cast<double>(p.second))) : p.value;
    case Finish::root: return static_cast<V>(::sqrt(value));
    case Finish::power_root: return static_cast<V>(::pow(value, 1 / call.parameter));
    case Finish::is_positive: return p.value > 0;
    case Finish::is_length: return p.value == static_cast<V>(call.along.numel);
  }
  return p.value;
}

template <class V>
RG_HD void write(const ReduceCall& call, Finish finish, int64_t row, const Partial<V>& p) {
  store<V>(call.out, call.out_element, row, finished(call, finish, p));
  if (call.index) call.index[row] = p.index;
}

/// Block (x, y) of a grid: rows [x * rows of a block, ...), part y of each. The elements that a thread takes:
/// begin, begin + lanes, ... below end; none of a row beyond the last.
struct RowPart {
  int lane, row_of_block;
  int64_t row, begin, end;

  __device__ explicit RowPart(const ReduceCall& call) {
    const int thread = static_cast<int>(threadIdx.x), rows_of_block = kThreads / call.lanes;
    lane = call.rows_first ? thread / rows_of_block : thread % call.lanes;
    row_of_block = call.rows_first ? thread % rows_of_block : thread / call.lanes;
    row = static_cast<int64_t>(blockIdx.x) * rows_of_block + row_of_block;
    const int64_t length = call.along.numel, first = blockIdx.y * call.part;
    begin = first + lane;
    end = row >= call.rows.numel ? begin : first + call.part < length ? first + call.part : length;
  }
};

/// Merges what the threads of each row have found, as a tree, and writes the row's number, or its Partial if
/// the row has several parts. `finish`: that of the call, for kernels that know it when they are compiled.
template <Reduction kind, class V>
__device__ void end_row(const ReduceCall& call, Finish finish, const RowPart& part, Partial<V>* found,
                        const Partial<V>& mine) {
  Partial<V>* const of_row = found + part.row_of_block * call.lanes;
  of_row[part.lane] = mine;
  for (int half = call.lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (part.lane < half) merge<kind>(of_row[part.lane], of_row[part.lane + half]);
  }
  if (part.lane > 0 || part.row >= call.rows.numel) return;
  if (call.splits > 1)
    static_cast<Partial<V>*>(call.partials)[part.row * call.splits + blockIdx.y] = of_row[0];
  else
    write(call, finish, part.row, of_row[0]);
}

/// One thread for each row: merges its parts in order and writes its number.
template <Reduction kind, class V>
__device__ void merge_parts(const ReduceCall& call, Finish finish) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= call.rows.numel) return;
  const Partial<V>* parts = static_cast<const Partial<V>*>(call.partials) + row * call.splits;
  Partial<V> all = parts[0];
  for (int s = 1; s < call.splits; ++s) merge<kind>(all, parts[s]);
  write(call, finish, row, all);
}

}  // namespace retrograd::cuda::RG_TARGET
