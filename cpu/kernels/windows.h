// Axis: the windows along one axis, as pooling and interpolation make them, and as the row functions take
// them.
//
// An Axis is a sparse matrix with a row per result and the elements of the operand as columns. All the
// linear ops on grids are products of such matrices, one for each axis, and their derivatives are products
// of the transposed ones. With a step of 1 the first and the last tap never move back along the results;
// transposed() needs that.
#pragma once

#include <vector>

#include "cpu/kernels/levels/window_rows.h"

namespace retrograd::inline v0::cpu {

struct Axis {
  int64_t in = 1, step = 1;
  std::vector<int64_t> first{0}, count{1};  // of each result; a window without taps still has a place
  std::vector<double> weight;               // of all taps, one result after the other; empty: all 1

  int64_t out() const { return static_cast<int64_t>(first.size()); }
  int64_t taps() const;  // the most of one result
  /// True when every result is the element of the same number.
  bool is_identity() const;
  /// The elements from the first to the last tap of results [begin, end).
  struct Reach {
    int64_t begin, end;
  };
  Reach reach(int64_t begin, int64_t end) const;
  /// The most elements that a band of `size` results, from a multiple of size on, reaches over.
  int64_t widest_band(int64_t size) const;
};

/// An axis that is copied.
Axis identity_axis(int64_t size);
/// `out` windows of `kernel` elements `dilation` apart that begin `stride` apart, the first of them
/// `padding` before the axis; without the taps that lie outside.
Axis window_axis(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation);
/// `out` windows of about equal size that cover the axis.
Axis adaptive_axis(int64_t in, int64_t out);
/// The matrix transposed. Its step must be 1.
Axis transposed(const Axis& axis);

/// The arrays of an Axis as the row functions take them.
template <class T>
class WindowArrays {
 public:
  explicit WindowArrays(const Axis& axis);
  const Windows<T>& windows() const { return windows_; }

 private:
  std::vector<LaneOf<T>> first_, count_;
  std::vector<T> weight_;
  Windows<T> windows_;
};

}  // namespace retrograd::cpu
