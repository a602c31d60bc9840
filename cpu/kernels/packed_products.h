// The products of attention and of recurrent cells: many small ones with the same right operand, which is packed once
// for all of them.
//
//   PackedRight   B (k, n) in the column panels that register tiles read (cpu/gemm/levels/gemm_kernels.h)
//   multiply()    C = alpha A B on this thread, of some columns of B and some steps of k: those that a mask admits
//
// A is read in place. Each element of C is summed in blocks of k as in cpu/gemm/gemm_plan.h.
#pragma once

#include <algorithm>

#include "cpu/gemm/gemm_plan.h"
#include "cpu/gemm/levels/gemm_kernels.h"
#include "cpu/scratch.h"

namespace retrograd::inline v0::cpu {

template <class T>
class PackedRight {
 public:
  /// Memory for k steps and n columns.
  PackedRight(int64_t k, int64_t n)
      : depth_(k),
        columns_(ceil_div(n, kernel_.columns) * kernel_.columns),
        memory_(columns_ * k) {}

  /// The first n columns of B, and k of its rows.
  void pack(MatrixView<T> b, int64_t k, int64_t n) const {
    const int64_t panels = ceil_div(n, kernel_.columns);
    parallel_range(panels, ceil_div(kPackWork, std::max<int64_t>(1, kernel_.columns * depth_)),
                   [&](int64_t begin, int64_t end) {
                     const int64_t j = begin * kernel_.columns;
                     kernel_.pack(b.data + j * b.column, b.column, b.row,
                                  std::min(n, end * kernel_.columns) - j, kernel_.columns, k,
                                  memory_.data() + j * depth_, panel());
                   });
  }
  /// At least n, rounded up to whole registers if these exist: for a C with room for unused elements.
  int64_t whole(int64_t n) const {
    constexpr int64_t kMost = 64 / sizeof(T);
    return std::min((n + kMost - 1) / kMost * kMost, columns_);
  }
  const GemmKernels<T>& kernel() const { return kernel_; }
  int64_t panel() const { return kernel_.columns * depth_; }
  const T* at(int64_t l) const { return memory_.data() + l * kernel_.columns; }

 private:
  static constexpr int64_t kPackWork = 1 << 15;  // elements that a chunk packs, at least

  const GemmKernels<T>& kernel_ = gemm_kernels<T>();
  int64_t depth_, columns_;
  Scratch<T> memory_;
};

/// C (m, n), with rows c_row elements apart, of the first n columns of B and its rows [first, first + k); added to C
/// if wanted.
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, MatrixView<T> a, const PackedRight<T>& b, int64_t first, T* c,
              int64_t c_row, T alpha, bool accumulate) {
  if (k == 0 && !accumulate)
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * c_row, n, T(0));
  if (m == 0 || n == 0 || k == 0) return;
  const int64_t depth = gemm_detail::block_depth<T>(k);
  const int rows = b.kernel().rows, columns = b.kernel().columns;
  GemmBlock<T> x;  // field by field: to clear it all before takes a good part of a small product
  x.m = m;
  x.n = n;
  x.a_panel = rows * a.row;
  x.a_row = a.row;
  x.a_column = a.column;
  x.a_is_near = false;
  x.keep_a = nullptr;
  x.b_panel = b.panel();
  x.b_row = columns;
  x.b_padded = true;
  x.rows = nullptr;
  x.rows_step = 0;
  x.keep = nullptr;
  x.c = c;
  x.c_row = c_row;
  x.alpha = alpha;
  x.start = nullptr;
  x.start_row = 0;
  x.rounded = nullptr;
  x.rounded_row = 0;
  x.n_ahead = 0;
  x.ahead = {};
  for (int64_t l = 0; l < k; l += depth) {
    x.k = std::min(depth, k - l);
    x.a = a.data + l * a.column;
    x.b = b.at(first + l);
    x.accumulate = accumulate || l > 0;
    b.kernel().block(x);
  }
}

}  // namespace retrograd::cpu
