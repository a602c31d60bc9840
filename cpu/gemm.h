// Matrix products of float and double on the CPU: C (+)= alpha A B, single or batched, over operands of any
// strides.
//
// A transposed operand is one whose strides are swapped; nothing is copied for it. The kernels are in
// cpu/kernels/gemm.cc, one set per instruction-set level; gemm.cc cuts the work. Cuts depend on sizes and
// strides alone and each element of C is summed by one thread in a fixed order: results do not depend on the
// number of threads. They differ in bits between instruction-set levels. Memory that overlaps between C and
// an operand is not allowed. Start reading at gemm().
#pragma once

#include <cstdint>
#include <span>

namespace retrograd::cpu {

/// A matrix somewhere in memory; strides in elements, of any sign, 0 included.
template <class T>
struct MatrixView {
  const T* data;
  int64_t row, column;
};

/// Product of A (m, k) and B (k, n) into C (m, n), whose rows are c_row elements apart and contiguous in
/// themselves.
template <class T>
struct Gemm {
  int64_t m, n, k;
  MatrixView<T> a, b;
  T* c;
  int64_t c_row;
  T alpha = 1;
  bool accumulate = false;  // add to C instead of replacing it
};

/// Computes it, on the pool when it is large. With k = 0 the product is zero.
void gemm(const Gemm<float>& product);
void gemm(const Gemm<double>& product);

/// Where the matrices of one product of a batch lie, relative to those of the first, in elements.
struct BatchOffsets {
  int64_t a, b, c;
};

/// gemm() for every entry of `offsets`, small ones in parallel. No two may write the same memory.
void gemm_batched(const Gemm<float>& first, std::span<const BatchOffsets> offsets);
void gemm_batched(const Gemm<double>& first, std::span<const BatchOffsets> offsets);

/// Sum of x[i * x_step] * y[i * y_step] for i < n, in blocks, so that the error does not grow with n.
float dot(const float* x, int64_t x_step, const float* y, int64_t y_step, int64_t n);
double dot(const double* x, int64_t x_step, const double* y, int64_t y_step, int64_t n);

}  // namespace retrograd::cpu
