// The inner parts of a matrix product, compiled once per instruction-set level: packing, a block of register
// tiles, and dot products. cpu/gemm.cc cuts a product into such blocks and decides what is packed.
//
// A register tile is `rows` x `columns` elements of C, held in registers while k runs. Operands come in
// panels: a row panel of A has `rows` rows, a column panel of B `columns` columns. A packed panel is k groups
// of that many consecutive elements, padded with zeros; an operand that lies well already is read where it
// is, through its strides.
#pragma once

#include <cstdint>

namespace retrograd::cpu {

/// c[i * c_row + j] (+)= alpha * sum over l of A[i, l] B[l, j], for i < m and j < n.
template <class T>
struct GemmBlock {
  int64_t m, n, k;
  const T* a;
  int64_t a_panel, a_row, a_column;  // A[i, l] is at a[i / rows * a_panel + i % rows * a_row + l * a_column]
  const T* b;
  int64_t b_panel, b_row;  // B[l, j] is at b[j / columns * b_panel + l * b_row + j % columns]
  const T* b_last;         // the last panel when n is no multiple of columns, else unused
  int64_t b_last_row;      // its B[l, j] is at b_last[l * b_last_row + j % columns]; it is read in full
  T* c;
  int64_t c_row;
  T alpha;
  bool accumulate;
};

template <class T>
struct GemmKernels {
  int rows, columns;  // of the register tile
  void (*block)(const GemmBlock<T>& block);
  /// One packed panel: out[l * width + i] = x[i * across + l * along] for i < count <= width and l < k; zeros
  /// for the other i.
  void (*pack)(const T* x, int64_t across, int64_t along, int64_t count, int64_t width, int64_t k, T* out);
  /// y[i * y_step] (+)= alpha * sum over l < k of a[i * a_row + l * a_column] x[l], for i < m; quick when
  /// a_column is 1.
  void (*dots)(const T* a, int64_t a_row, int64_t a_column, const T* x, int64_t m, int64_t k, T* y,
               int64_t y_step, T alpha, bool accumulate);
  /// y[j * y_step] (+)= alpha * sum over l < k of x[l] b[l * b_row + j], for j < n.
  void (*combine)(const T* x, const T* b, int64_t b_row, int64_t n, int64_t k, T* y, int64_t y_step, T alpha,
                  bool accumulate);
};

namespace baseline {
const GemmKernels<float>& gemm_kernels(float);
const GemmKernels<double>& gemm_kernels(double);
}  // namespace baseline
namespace avx2 {
const GemmKernels<float>& gemm_kernels(float);
const GemmKernels<double>& gemm_kernels(double);
}  // namespace avx2
namespace avx512 {
const GemmKernels<float>& gemm_kernels(float);
const GemmKernels<double>& gemm_kernels(double);
}  // namespace avx512

/// Those of this machine's level: float and double.
template <class T>
const GemmKernels<T>& gemm_kernels();

}  // namespace retrograd::cpu
