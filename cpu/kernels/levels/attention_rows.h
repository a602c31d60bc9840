// The elementwise part of attention on a block of scores: one table of functions per instruction-set level.
// Implemented by attention_rows.cc.
//
// A block has a row for each query, `width` elements apart. Row r has scores for its first keys(r) elements;
// what lies beyond, up to the block's number of keys rounded up to kAttentionPad, may be anything and is
// written as zeros, so there must be room for it.
#pragma once

#include <cstdint>

#include "cpu/levels.h"

namespace retrograd::inline v0::cpu {

inline constexpr int64_t kAttentionPad = 16;  // elements: at least a vector register of any level

struct ScoreBlock {
  int64_t rows, width;
  int64_t keys;        // at most, in any row
  int64_t first_keys;  // in row 0
  bool causal;         // each row has one key more than the row above, while there are keys

  int64_t row_keys(int64_t r) const { return causal && first_keys + r < keys ? first_keys + r : keys; }
};

template <class T>
struct AttentionRowTable {
  /// x = exp(x - m), where m is the largest score of the row; lse = log(sum exp), factor = 1 / sum of the row
  /// of x (0 for no keys).
  void (*weights)(T* x, const ScoreBlock& block, T* lse, T* factor);
  /// p = exp(x - lse) into x, and p * (dp - delta) into dp.
  void (*gradients)(T* x, T* dp, const ScoreBlock& block, const T* lse, const T* delta);
  /// x[r * x_row + i] *= factor[r] for i < n, r < rows.
  void (*scale)(T* x, int64_t x_row, int64_t rows, int64_t n, const T* factor);
  /// out[r] = sum of a[r * a_row + i] * b[r * b_row + i] over i < n, for r < rows.
  void (*inner)(const T* a, int64_t a_row, const T* b, int64_t b_row, int64_t rows, int64_t n, T* out);
};

RG_EACH_LEVEL(template <class T> const AttentionRowTable<T>& attention_row_table();)
/// The table of the best level, for T float and double.
template <class T>
const AttentionRowTable<T>& attention_row_table() {
  RG_RETURN_BEST_LEVEL(attention_row_table<T>());
}

}  // namespace retrograd::cpu
