// QR and LU factors of one dense matrix of any shape, least squares and the exponential, compiled once per
// instruction-set level (cpu/kernels/levels/decompose.cc). cpu/kernels/levels/factor.h has the factorisations of square
// matrices that systems are solved with.
//
// All matrices are row-major and dense, have at least one row and one column, and do not overlap. Work is done by one
// thread, with memory of Eigen's own. A matrix with elements that are not finite gives nan in every element of every
// result.
#pragma once

#include <cstdint>

#include "cpu/levels.h"

namespace retrograd::inline v0::cpu {

template <class T>
struct DecompositionKernels {
  /// a (m, n), m >= n, = q r with q (m, k), r (k, n), k = n, or m if `complete`.
  void (*qr)(const T* a, int64_t m, int64_t n, bool complete, T* q, T* r);
  /// a (m, n) becomes L, without its diagonal of ones, and U of P a = L U. Row i was exchanged with row pivots[i], for
  /// i = 0, 1, ... min(m, n) - 1. A column without a pivot leaves a zero on U's diagonal.
  void (*lu)(T* a, int64_t m, int64_t n, int32_t* pivots);
  /// The x (n, columns) of least norm among those that minimise |a x - b|, for a (m, n).
  void (*lstsq)(const T* a, int64_t m, int64_t n, const T* b, int64_t columns, T* x);
  /// The exponential of a (n, n).
  void (*matrix_exp)(const T* a, int64_t n, T* out);
};

RG_EACH_LEVEL(const DecompositionKernels<float>& decomposition_kernels(float);
              const DecompositionKernels<double>& decomposition_kernels(double);)
/// The functions of the best level, for T float and double.
template <class T>
const DecompositionKernels<T>& decomposition_kernels() {
  RG_RETURN_BEST_LEVEL(decomposition_kernels(T{}));
}

}  // namespace retrograd::cpu
