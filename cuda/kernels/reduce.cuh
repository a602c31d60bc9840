// The work of a thread of a reduction, except for the source of the elements: its share of a row, how elements and
// parts are merged, and the result of a row. Used by the kernels of single reductions (cuda/kernels/reduce.cu) and of
// fused groups (cuda/fusion/fused.cuh), which merge in the same order and therefore give the same bits.
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

namespace retrograd::inline v0::cuda::RG_TARGET {

template <Reduction kind, class V>
RG_HD Partial<V> nothing() {
  return ops::nothing<kind, Partial<V>>();
}

// Some lanes and parts have no elements.
template <Reduction kind, class V>
RG_HD void merge(Partial<V>& a, const Partial<V>& b) {
  if (b.count == 0) return;
  if (a.count == 0)
    a = b;
  else
    ops::merge<kind>(a, b, 0);
}

// The Partial of the element x alone.
template <Reduction kind, class C>
RG_HD Partial<typename Accumulated<C>::Type> of_one(C x, int64_t index, double p) {
  using V = typename Accumulated<C>::Type;
  V v = static_cast<V>(x);
  if constexpr (ops::is_of_magnitude(kind)) v = v < 0 ? -v : v;
  if constexpr (kind == Reduction::square_sum) v *= v;
  if constexpr (kind == Reduction::power_sum) v = static_cast<V>(::pow(static_cast<double>(v), p));
  if constexpr (kind == Reduction::nonzero) v = x != 0;
  return {v, 0, index, 1};
}

template <class V>
RG_HD V finished(const ReduceCall& call, Finish finish, const Partial<V>& p) {
  const double n = static_cast<double>(call.along.numel), value = static_cast<double>(p.value);
  switch (finish) {
    case Finish::value: return p.value;
    case Finish::mean: return static_cast<V>(value / n);
    case Finish::index: return static_cast<V>(p.index);
    case Finish::variance: return static_cast<V>(ops::variance_of(p, n, call.parameter));
    case Finish::deviation: return static_cast<V>(::sqrt(ops::variance_of(p, n, call.parameter)));
    case Finish::logsumexp: return static_cast<V>(ops::log_sum_exp_of(p));
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

/// Block (x, y) of a grid: rows [x * rows of a block, ...), part y of each. The elements that a thread processes:
/// begin, begin + lanes, ... below end; none for a row beyond the last.
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

/// Merges the findings of the threads of each row, as a tree, and writes the row's result, or its Partial if the row
/// has several parts. `finish`: that of the call, for kernels that know it at compile time.
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

/// One thread for each row: merges its parts in order and writes its result.
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
