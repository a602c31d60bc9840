// Moves and conversions of runs of elements: two tables of functions per instruction-set level. Implemented
// by copy_rows.cc.
//
// ConvertTable goes between a compute type (float, double, int64_t) and every dtype, by the formulas of
// ops/convert.h. MoveTable moves elements as bits, by their width. Every kernel uses these for dtypes and layouts
// other than its own, one call for a run of elements. A step counts elements and may be 0 or negative.
#pragma once

#include <cstdint>

#include "cpu/levels.h"
#include "engine/dtype.h"

namespace retrograd::inline v0::cpu {

/// Between the compute types float, double, int64_t and every dtype, by ScalarType.
template <class T>
struct ConvertTable {
  /// to[i] = from[i * step] for i < n.
  void (*load[kScalarTypeCount])(const void* from, int64_t step, int64_t n, T* to);
  /// to[i * step] = from[i].
  void (*store[kScalarTypeCount])(const T* from, int64_t n, void* to, int64_t step);
};

/// Of elements as bits, by the logarithm of their width: 1, 2, 4 or 8 bytes.
struct MoveTable {
  /// to[i * to_step] = from[i * step].
  void (*move[4])(const void* from, int64_t step, int64_t n, void* to, int64_t to_step);
  /// to[i] = *value.
  void (*fill[4])(const void* value, int64_t n, void* to);
  /// to[j * to_stride + i] = from[i * stride + j] for i < rows, j < columns.
  void (*transpose[4])(const void* from, int64_t stride, int64_t rows, int64_t columns, void* to,
                       int64_t to_stride);
  /// Runs one after the other: to[j * to_stride + i] = from[j * stride + i * step] for j < runs, i < n.
  void (*runs[4])(const void* from, int64_t stride, int64_t step, int64_t runs, int64_t n, void* to,
                  int64_t to_stride);
};

RG_EACH_LEVEL(template <class T> const ConvertTable<T>& convert_table();)
/// The table of the best level, for T float, double and int64_t.
template <class T>
const ConvertTable<T>& convert_table() {
  RG_RETURN_BEST_LEVEL(convert_table<T>());
}

RG_EACH_LEVEL(const MoveTable& move_table();)
/// The table of the best level.
inline const MoveTable& move_table() { RG_RETURN_BEST_LEVEL(move_table()); }

/// The index of an element's width in a MoveTable.
constexpr int width_index(ScalarType dtype) {
  const size_t bytes = element_size(dtype);
  return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
}

}  // namespace retrograd::cpu
