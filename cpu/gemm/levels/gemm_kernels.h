// The inner parts of a matrix product, compiled once per instruction-set level: packing, a block of register
// tiles, and dot products. cpu/gemm/gemm.cc cuts a product into such blocks and decides what is packed.
//
// A register tile is `rows` x `columns` elements of C, held in registers while k runs. Operands come in
// panels: a row panel of A has `rows` rows, a column panel of B `columns` columns. A packed panel has that
// many consecutive elements for each step of k, padded with zeros; an operand that lies well already is read
// where it is, through its strides.
//
// A step of k is one element of float and double, and a pair of bfloat16 operands: their instruction
// multiplies pairs and adds both products to a float. A packed element holds all that a step has of a row or
// column.
#pragma once

#include <cstdint>

#include "cpu/levels.h"
#include "engine/float_formats.h"

namespace retrograd::inline v0::cpu {

/// What products of T are made of: packed elements, how many of T they hold, and sums.
template <class T>
struct GemmTypes {
  using Packed = T;
  using Sum = T;
  static constexpr int64_t group = 1;
};
template <>
struct GemmTypes<BFloat16> {
  using Packed = uint32_t;
  using Sum = float;
  static constexpr int64_t group = 2;
};

/// Rows of a register tile, below which sums wait for each other: such a tile takes as long as one with so many.
inline constexpr int64_t kLeastRows = 4;

/// Memory that will be read next: `count` pieces of `bytes`, `step` bytes apart.
struct Ahead {
  const void* data;
  int64_t count, bytes, step;
};

/// c[i * c_row + j] = alpha * sum over l of A[i, l] B[l, j], for i < m and j < n, in packed elements; and to
/// it is added start[i * start_row + j] where start is not null, else what was in c if that is wanted. Sums
/// of bfloat16 products are rounded into rounded[i * rounded_row + j] instead of c where that is not null.
template <class T>
struct GemmBlock {
  using Packed = typename GemmTypes<T>::Packed;
  using Sum = typename GemmTypes<T>::Sum;
  int64_t m, n, k;
  const Packed* a;
  int64_t a_panel, a_row, a_column;  // A[i, l] is at a[i / rows * a_panel + i % rows * a_row + l * a_column]
  bool a_is_near;                    // in the second-level cache: a block before has read it
  /// If not null, A lies with contiguous elements of a column and is left packed here, in row panels that follow each
  /// other. n is at most that of one column panel, which is full if B does not come in panels.
  Packed* keep_a;
  const Packed* b;
  int64_t b_panel, b_row;  // B[l, j] is at b[j / columns * b_panel + l * b_row + j % columns]
  bool b_padded;           // the last panel may be read in full, whatever n
  /// B where it lies, if not null, with contiguous elements of a row: the first row panel leaves it packed in
  /// `keep`, which has room for one column panel, for the others. There have to be others, and n has to be a
  /// multiple of the panel's columns, k a multiple of a group.
  const T* rows;
  int64_t rows_step;
  Packed* keep;
  Sum* c;
  int64_t c_row;
  Sum alpha;
  bool accumulate;
  const Sum* start;
  int64_t start_row;
  BFloat16* rounded;
  int64_t rounded_row;
  int64_t n_ahead;  // columns of C next to these, which the next block writes
  Ahead ahead;  // brought to the second-level cache meanwhile; without it the next panels of a large packed B
};

/// c[i * c_row + j * c_column] (+)= alpha * sum over l < k of a[i * a_row + l] b[j * b_row + l], for i < m
/// and j < n, of which n is small.
template <class T>
struct GemmDots {
  int64_t m, n, k;
  const T* a;
  int64_t a_row;
  const T* b;
  int64_t b_row;
  T* c;
  int64_t c_row, c_column;
  T alpha;
  bool accumulate;
};

template <class T>
struct GemmKernels {
  int rows, columns;           // of the register tile
  int row_panels;              // of a tile of deep blocks of k: what stays in a second-level cache
  int column_panels;           // of a tile, if there are several blocks of k, each of which adds to C
  bool keeps_columns = false;  // block() takes keep_a
  int64_t near_b = 0;          // bytes of a B in place, up to which it is not fetched ahead
  int64_t far_step =
      0;  // bytes between steps of k, from which on reading columns of A where they lie is slow
  void (*block)(const GemmBlock<T>& block);
  /// Packed panels of `width` rows or columns, `panel` elements apart, as many as `count` needs: element
  /// p * panel + l * width + i of out is x[(p * width + i) * across + l * along] for p * width + i < count and
  /// l < k; zeros for the other i of the last panel, and for the last l where a group is not full.
  void (*pack)(const T* x, int64_t across, int64_t along, int64_t count, int width, int64_t k,
               typename GemmTypes<T>::Packed* out, int64_t panel);
  /// Row panels of A, for a block() to which they do not lie as column panels do; null: pack().
  void (*pack_a)(const T* x, int64_t across, int64_t along, int64_t count, int width, int64_t k,
                 typename GemmTypes<T>::Packed* out, int64_t panel) = nullptr;
  /// y[i * y_step] (+)= alpha * sum over l < k of a[i * a_row + l * a_column] x[l], for i < m; fast when
  /// a_column is 1.
  void (*dots)(const T* a, int64_t a_row, int64_t a_column, const T* x, int64_t m, int64_t k, T* y,
               int64_t y_step, T alpha, bool accumulate) = nullptr;  // null for bfloat16, and so what follows
  /// y[j * y_step] (+)= alpha * sum over l < k of x[l] b[l * b_row + j], for j < n.
  void (*combine)(const T* x, const T* b, int64_t b_row, int64_t n, int64_t k, T* y, int64_t y_step, T alpha,
                  bool accumulate) = nullptr;
  void (*narrow)(const GemmDots<T>& x) = nullptr;
};

RG_EACH_LEVEL(const GemmKernels<float>& gemm_kernels(float); const GemmKernels<double>& gemm_kernels(double);)
/// The functions of the best level, for T float and double.
template <class T>
const GemmKernels<T>& gemm_kernels() {
  RG_RETURN_BEST_LEVEL(gemm_kernels(T{}));
}

namespace avx512bf16 {
const GemmKernels<BFloat16>& gemm_kernels();
}
namespace amx {
const GemmKernels<BFloat16>& gemm_kernels();
}
#if defined(__x86_64__)
/// Those of bfloat16, where has_bfloat16() (cpu/levels.h).
template <>
inline const GemmKernels<BFloat16>& gemm_kernels<BFloat16>() {
  return has_amx() ? amx::gemm_kernels() : avx512bf16::gemm_kernels();
}
#endif

}  // namespace retrograd::cpu
