// Windows over contiguous rows: the operations of pooling and interpolation on a row. One table of functions per
// instruction-set level.
//
// Windows<T> says for each result along an axis which elements of the operand go into it: `count` of them
// (the taps), from `first` on in steps of `step`, each with a weight. The elements for neighbouring results
// are neighbours: a register of results takes its elements from two registers of the row, by a shuffle.
//
// Float and double are implemented by window_rows.cc, int64_t by plain loops in cpu/kernels/windows.cc. Other
// dtypes and strides are copied to such rows first.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cpu/levels.h"

namespace retrograd::inline v0::cpu {

/// The integer as wide as T, to be held in lanes next to it.
template <class T>
using LaneOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

/// Number of elements beyond the end of a row that the functions may read.
inline constexpr int64_t kRowSlack = 32;
/// Results to which the arrays of Windows are padded.
inline constexpr int64_t kWindowPadding = 16;

template <class T>
struct Windows {
  int64_t in, out;  // elements along the axis, of the operand and of the result
  int64_t step;
  int64_t taps, sure;      // the most and the fewest taps of one result
  const LaneOf<T>* first;  // of each result
  const LaneOf<T>* count;
  bool ordered;     // `first` never decreases
  bool halving;     // it grows by 2, and each result has all taps, one after the other
  const T* weight;  // of tap k of result j: weight[k * pitch + j]; null: all 1
  int64_t pitch;
};

template <class T>
struct WindowTable {
  /// y[j] = sum over taps k of weight * x[first[j] + k * step], for each result j; 0 where there is no tap.
  void (*combine)(const T* x, const Windows<T>& windows, T* y);
  /// y[i] = sum over k < count of weight[k * pitch] * rows[k][i], for i < n. Without weight: all 1.
  void (*add_rows)(const T* const* rows, const T* weight, int64_t pitch, int64_t count, int64_t n, T* y);
  /// y[i] = x[i] / (by[i] * scale), for i < n. y may be x.
  void (*divide)(const T* x, const T* by, T scale, int64_t n, T* y);
  /// The largest element in windows over several rows, and its place: place[k] + its index in the row
  /// rows[k]. Of equal elements the first counts, of nans the last; place[0] + first[j], -inf where there
  /// is no tap.
  void (*max_rows)(const T* const* rows, const LaneOf<T>* place, int64_t count, const Windows<T>& windows,
                   T* values, int64_t* places);
};

RG_EACH_LEVEL(template <class T> const WindowTable<T>& window_table();)
/// The table of the best level, for T float and double.
template <class T>
const WindowTable<T>& window_table() {
  RG_RETURN_BEST_LEVEL(window_table<T>());
}
/// Of int64_t at every level: plain loops in cpu/kernels/windows.cc.
template <>
const WindowTable<int64_t>& window_table<int64_t>();

}  // namespace retrograd::cpu
