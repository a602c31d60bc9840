// Moves and conversions of runs of elements: one table of functions per instruction-set level.
//
// Implemented by cpu/kernels/rows_copy.cc, which is compiled once per level. A step counts elements and may
// be 0 or negative. Conversions are those of ops/convert.h.
#pragma once

#include <cstdint>

#include "engine/dtype.h"

namespace retrograd::cpu {

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

namespace baseline {
template <class T>
const ConvertTable<T>& convert_table();
const MoveTable& move_table();
}  // namespace baseline
namespace avx2 {
template <class T>
const ConvertTable<T>& convert_table();
const MoveTable& move_table();
}  // namespace avx2
namespace avx512 {
template <class T>
const ConvertTable<T>& convert_table();
const MoveTable& move_table();
}  // namespace avx512

/// The tables of the best level that this machine has, for T float, double and int64_t.
template <class T>
const ConvertTable<T>& convert_table();
const MoveTable& move_table();

/// The index of an element's width in a MoveTable.
constexpr int width_index(ScalarType dtype) {
  const size_t bytes = element_size(dtype);
  return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
}

}  // namespace retrograd::cpu
