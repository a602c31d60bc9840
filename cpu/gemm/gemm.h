// Matrix products of float and double on the CPU: C = alpha A B, optionally added to C or to another matrix, single
// or batched, over operands of any strides; of bfloat16 into float, if the machine has instructions for that.
//
// A transposed operand is one whose strides are swapped; nothing is copied for it. The kernels are in
// cpu/gemm/levels/gemm_kernels.cc, one set per instruction-set level; gemm.cc cuts the work. The cutting of k depends
// on sizes and strides alone and each element of C is summed by one thread in a fixed order: results do not depend on
// the number of threads, though the tiles do. Results differ in bits between instruction-set levels. Memory that
// overlaps between C and an operand is not allowed. Start reading at gemm().
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "engine/float_formats.h"

namespace retrograd::inline v0::cpu {

/// A matrix somewhere in memory; strides in elements, of any sign, 0 included.
template <class T>
struct MatrixView {
  const T* data;
  int64_t row, column;
};

/// Product of A (m, k) and B (k, n) into C (m, n), whose rows are c_row elements apart and contiguous in
/// themselves. C of bfloat16 operands is float.
template <class T>
struct Gemm {
  using Sum = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;
  int64_t m, n, k;
  MatrixView<T> a, b;
  Sum* c;
  int64_t c_row;
  Sum alpha = 1;
  bool accumulate = false;  // add to C instead of replacing it
  /// The matrix to which the product is added instead of C, unless null: its rows are start_row elements apart, 0 for
  /// a row that is added to all.
  const Sum* start = nullptr;
  int64_t start_row = 0;
  /// The destination of the rounded result of bfloat16 operands, unless null, instead of C, with k > 0. C then holds
  /// partial sums; it may be null unless sums_in_parts(k).
  BFloat16* rounded = nullptr;
  int64_t rounded_row = 0;
};

/// Computes the product, on the pool if it is large. With k = 0 the product is zero.
void gemm(const Gemm<float>& product);
void gemm(const Gemm<double>& product);

/// Whether bfloat16 operands should be multiplied without conversion: the machine has instructions for it and neither
/// m nor n is very small. Otherwise they must be converted, and gemm() must not be called. These instructions treat
/// subnormal numbers as zeros; sums are float, each product added with two roundings.
bool multiplies_bfloat16(int64_t m, int64_t n);
/// Whether products of bfloat16 operands have partial sums.
bool sums_in_parts(int64_t k);
void gemm(const Gemm<BFloat16>& product);

/// The offsets of the matrices of one product of a batch, relative to those of the first, in elements.
struct BatchOffsets {
  int64_t a, b, c;
};

/// gemm() for every entry of `offsets`, small ones in parallel. No two may write the same memory; `start` must be
/// null.
void gemm_batched(const Gemm<float>& first, std::span<const BatchOffsets> offsets);
void gemm_batched(const Gemm<double>& first, std::span<const BatchOffsets> offsets);
void gemm_batched(const Gemm<BFloat16>& first, std::span<const BatchOffsets> offsets);

/// Sum of x[i * x_step] * y[i * y_step] for i < n, in blocks, so that the error does not grow with n.
float dot(const float* x, int64_t x_step, const float* y, int64_t y_step, int64_t n);
double dot(const double* x, int64_t x_step, const double* y, int64_t y_step, int64_t n);

}  // namespace retrograd::cpu
