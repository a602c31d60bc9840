// Eigenvalues, singular values and the pseudo-inverse of one dense matrix, compiled once per instruction-set level
// (cpu/kernels/levels/spectral.cc).
//
// All matrices are row-major and dense, have at least one row and one column, and do not overlap. Work is done by one
// thread, with memory of Eigen's own. A matrix with elements that are not finite gives nan in every element of every
// result.
#pragma once

#include <cstdint>

#include "cpu/levels.h"

namespace retrograd::inline v0::cpu {

/// Singular values, or absolute eigenvalues, up to max(absolute, relative * the largest) count as zero.
template <class T>
struct RankTolerance {
  T absolute, relative;
};

template <class T>
struct SpectralKernels {
  /// a (n, n), symmetric, of which one triangle is read: eigenvalues ascending, and eigenvectors (n, n) as columns
  /// unless `vectors` is null.
  void (*eigh)(const T* a, int64_t n, bool upper, T* values, T* vectors);
  /// a (m, n) = u diag(s) vh, s descending; u (m, k), vh (k, n) with k = min(m, n), or square if `full`; both null for
  /// the values alone.
  void (*svd)(const T* a, int64_t m, int64_t n, bool full, T* u, T* s, T* vh);
  /// The (n, m) pseudo-inverse of a (m, n); `symmetric`: of the matrix whose lower triangle `a` has.
  void (*pinv)(const T* a, int64_t m, int64_t n, bool symmetric, RankTolerance<T> zero, T* out);
};

RG_EACH_LEVEL(const SpectralKernels<float>& spectral_kernels(float);
              const SpectralKernels<double>& spectral_kernels(double);)
/// The functions of the best level, for T float and double.
template <class T>
const SpectralKernels<T>& spectral_kernels() {
  RG_RETURN_BEST_LEVEL(spectral_kernels(T{}));
}

}  // namespace retrograd::cpu
