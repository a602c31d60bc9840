// Reductions of contiguous rows of float, double or 64-bit integers: one table of functions per
// instruction-set level.
//
// Implemented by cpu/kernels/reduce_rows*.cc, which are compiled once per level; other dtypes and strides
// come through tiles (cpu/kernels/row_access.h). A row is reduced chunk by chunk and the chunks are merged in
// order, so that results depend on sizes alone. Within a chunk sums run in lanes of T, beyond it in double: a
// float32 sum of a million elements is good to about 1e-7 of the sum of magnitudes.
#pragma once

#include <cstdint>

#include "cpu/levels.h"
#include "engine/float_formats.h"
#include "ops/accumulated.h"
#include "ops/reductions.h"

namespace retrograd::inline v0::cpu {

/// Elements of a row that are reduced at once, and rows that are reduced side by side.
inline constexpr int64_t kChunk = 4096;
inline constexpr int64_t kMostRows = 64;
/// Elements of the pieces that a chunk may come in, and lanes that it is reduced in meanwhile.
inline constexpr int64_t kPieceLanes = 64;
/// Rows whose columns are summed in T before they go into double; rows that are added pairwise before they meet these
/// sums.
inline constexpr int64_t kSumRows = 128, kSumStep = 8;

using ops::Reduction;
/// In double for floating elements, int64_t for integers.
template <class V>
using Partial = ops::ScaledPartial<V>;

/// Of T float, double or int64_t.
template <class T>
struct ReduceTable {
  using V = typename Accumulated<T>::Type;

  /// Reduces 1 <= n <= kChunk elements, whose indices count from 0; p is the exponent of power_sum.
  void (*reduce)(const T* x, int64_t n, Reduction kind, double p, Partial<V>* out);
  /// The same for `columns` <= kMostRows rows side by side: element i of row j is x[i * stride + j].
  void (*reduce_columns)(const T* x, int64_t rows, int64_t stride, int64_t columns, Reduction kind, double p,
                         Partial<V>* out);
  /// out[j] += sum over i < rows of x[i * stride + j], for j < columns. Of float and double only, as all that follows
  /// but reduce_rows.
  void (*sum_columns)(const T* x, int64_t rows, int64_t stride, int64_t columns, double* out);
  /// `reduce` for elements that come in pieces, of kPieceLanes or a multiple, the last one of any size: of sum, max
  /// and min. What is known between the pieces is in `lanes`.
  void (*begin_pieces)(Reduction kind, T* lanes);
  void (*add_piece)(const T* x, int64_t n, Reduction kind, T* lanes);
  void (*end_pieces)(const T* lanes, Reduction kind, Partial<double>* out);
  /// `reduce` for rows of n elements, 1 <= n <= kChunk: the same without a call a row.
  void (*reduce_rows)(const T* x, int64_t rows, int64_t stride, int64_t n, Reduction kind, double p,
                      Partial<V>* out);
  /// out[j] *= product over i < rows of x[i * stride + j].
  void (*multiply_columns)(const T* x, int64_t rows, int64_t stride, int64_t columns, double* out);
  /// sum_columns() of elements that are converted to T where they are added: the same bits as of such that were
  /// converted before.
  void (*sum_bfloat16_columns)(const BFloat16* x, int64_t rows, int64_t stride, int64_t columns, double* out);
  /// What sum_columns() does with up to kSumRows rows before it adds to double: sums[j] += their sum. They may come
  /// in pieces, each but the last of a multiple of kSumStep rows.
  void (*add_rows)(const T* x, int64_t rows, int64_t stride, int64_t columns, T* sums);
};

RG_EACH_LEVEL(template <class T> const ReduceTable<T>& reduce_table();)
/// The table of the best level, for T float, double and int64_t.
template <class T>
const ReduceTable<T>& reduce_table() {
  RG_RETURN_BEST_LEVEL(reduce_table<T>());
}

}  // namespace retrograd::cpu
