// Factorisations of one dense matrix and the solves that go with them, compiled once per instruction-set
// level (cpu/kernels/levels/factor.cc). cpu/kernels/linalg.cc finds the matrices of a batch and cuts it into
// chunks.
//
// All matrices are row-major and dense: element (i, j) of an n-column matrix is at [i * n + j]. Work is done
// in place, by one thread. A factorisation P A = L U of a square matrix is kept as one matrix, U on and above
// the diagonal and L, without its ones, below it, and as the permutation: row i of A is row permutation[i] of
// P A.
#pragma once

#include <cstdint>

#include "cpu/levels.h"

namespace retrograd::inline v0::cpu {

template <class T>
struct FactorKernels {
  /// `a` (n, n) becomes L and U, with partial pivoting. A column without a pivot leaves a zero on U's
  /// diagonal.
  void (*lu)(T* a, int64_t n, int32_t* permutation);
  /// b (n, columns) becomes the X of A X = b, or of A' X = b. A zero on U's diagonal gives inf or nan.
  void (*lu_solve)(const T* lu, const int32_t* pivots, int64_t n, T* b, int64_t columns, bool transposed);
  /// The lower triangle of `a` (n, n) becomes L with a = L L'; above the diagonal nothing is read or written.
  /// False when `a` is not positive definite: then the values of `a` are undefined.
  bool (*cholesky)(T* a, int64_t n);
  /// b (n, columns) becomes the X of T X = b, T being a triangle of `a`; `unit`: with ones on its diagonal.
  void (*triangular_solve)(const T* a, int64_t n, bool upper, bool unit, T* b, int64_t columns);
};

RG_EACH_LEVEL(const FactorKernels<float>& factor_kernels(float);
              const FactorKernels<double>& factor_kernels(double);)
/// The functions of the best level, for T float and double.
template <class T>
const FactorKernels<T>& factor_kernels() {
  RG_RETURN_BEST_LEVEL(factor_kernels(T{}));
}

}  // namespace retrograd::cpu
