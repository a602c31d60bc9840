// Eigenvalues and singular values by Eigen for one instruction-set level: see cpu/kernels/levels/spectral.h.
//
// Eigen is renamed per level by the build (tools/isa.bzl), so levels share no templates. Its decompositions work on
// column-major copies of their own.
#include "cpu/kernels/levels/spectral.h"

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>

#include "cpu/kernels/levels/eigen_maps.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

template <class T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

template <class T>
void eigh(const T* a, int64_t n, bool upper, T* values, T* vectors) {
  const ConstMap<T> rows(a, n, n);
  // Eigen reads the lower triangle, which in rows is the upper one of the transpose.
  const Columns<T> lower = upper ? Columns<T>(rows.transpose()) : Columns<T>(rows);
  const int wanted = vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly;
  const bool is_finite = Columns<T>(lower.template triangularView<Eigen::Lower>()).allFinite();
  Eigen::SelfAdjointEigenSolver<Columns<T>> solver;
  if (!is_finite || solver.compute(lower, wanted).info() != Eigen::Success) {
    fill_nan(values, n, 1);
    fill_nan(vectors, n, n);
    return;
  }
  Map<T>(values, n, 1) = solver.eigenvalues();
  if (vectors) Map<T>(vectors, n, n) = solver.eigenvectors();
}

template <class T>
void svd(const T* a, int64_t m, int64_t n, bool full, T* u, T* s, T* vh) {
  const ConstMap<T> rows(a, m, n);
  const int64_t k = m < n ? m : n, left = full ? m : k, right = full ? n : k;
  const int vectors =
      full ? Eigen::ComputeFullU | Eigen::ComputeFullV : Eigen::ComputeThinU | Eigen::ComputeThinV;
  Eigen::BDCSVD<Columns<T>> solver;
  if (!rows.allFinite() || solver.compute(Columns<T>(rows), u ? vectors : 0).info() != Eigen::Success) {
    fill_nan(u, m, left);
    fill_nan(s, k, 1);
    fill_nan(vh, right, n);
    return;
  }
  Map<T>(s, k, 1) = solver.singularValues();
  if (!u) return;
  Map<T>(u, m, left) = solver.matrixU();
  Map<T>(vh, right, n) = solver.matrixV().transpose();
}

// left diag(1 / values, 0 for those that count as zero) right'.
template <class T>
void product_of_inverses(const Columns<T>& left, const Vector<T>& values, const Columns<T>& right,
                         RankTolerance<T> zero, T* out) {
  const T relative = zero.relative * values.cwiseAbs().maxCoeff();
  const T bound = zero.absolute > relative ? zero.absolute : relative;
  Vector<T> inverses = values;
  for (int64_t i = 0; i < values.size(); ++i)
    inverses[i] = values[i] > bound || -values[i] > bound ? 1 / values[i] : T{0};
  Map<T>(out, left.rows(), right.rows()).noalias() = left * inverses.asDiagonal() * right.transpose();
}

template <class T>
void pinv(const T* a, int64_t m, int64_t n, bool symmetric, RankTolerance<T> zero, T* out) {
  const Columns<T> matrix = ConstMap<T>(a, m, n);
  if (!matrix.allFinite()) return fill_nan(out, n, m);
  if (symmetric) {
    const Eigen::SelfAdjointEigenSolver<Columns<T>> solver(matrix);
    if (solver.info() != Eigen::Success) return fill_nan(out, n, m);
    return product_of_inverses<T>(solver.eigenvectors(), solver.eigenvalues(), solver.eigenvectors(), zero,
                                  out);
  }
  const Eigen::BDCSVD<Columns<T>> solver(matrix, Eigen::ComputeThinU | Eigen::ComputeThinV);
  if (solver.info() != Eigen::Success) return fill_nan(out, n, m);
  product_of_inverses<T>(solver.matrixV(), solver.singularValues(), solver.matrixU(), zero, out);
}

template <class T>
constexpr SpectralKernels<T> kKernels = {eigh<T>, svd<T>, pinv<T>};

}  // namespace

const SpectralKernels<float>& spectral_kernels(float) { return kKernels<float>; }
const SpectralKernels<double>& spectral_kernels(double) { return kKernels<double>; }

}  // namespace retrograd::cpu::RG_ISA
