// Factorisations by Eigen for one instruction-set level: see cpu/kernels/levels/factor.h.
//
// Eigen is renamed per level by the build (tools/isa.bzl), so levels share no templates. Its objects work on
// maps of the caller's memory; what they allocate are packed panels and permutations. In Eigen's words a
// row-major matrix is one whose storage order is RowMajor; all its algorithms used here take both orders.
#include "cpu/kernels/levels/factor.h"

#include <Eigen/Cholesky>
#include <Eigen/LU>

#include "cpu/kernels/levels/eigen_maps.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

using Permutation = Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int32_t>;

template <class T>
void lu(T* a, int64_t n, int32_t* permutation) {
  Map<T> matrix(a, n, n);
  const Eigen::PartialPivLU<Eigen::Ref<Rows<T>>> factors(matrix);
  const auto& rows = factors.permutationP().indices();
  for (int64_t i = 0; i < n; ++i) permutation[i] = rows[i];
}

template <class T>
void lu_solve(const T* lu, const int32_t* permutation, int64_t n, T* b, int64_t columns, bool transposed) {
  const ConstMap<T> factors(lu, n, n);
  const Eigen::Map<Permutation> p(permutation, n);
  Map<T> x(b, n, columns);
  if (transposed) {
    factors.template triangularView<Eigen::Upper>().transpose().solveInPlace(x);
    factors.template triangularView<Eigen::UnitLower>().transpose().solveInPlace(x);
    x = p.inverse() * x;
  } else {
    x = p * x;
    factors.template triangularView<Eigen::UnitLower>().solveInPlace(x);
    factors.template triangularView<Eigen::Upper>().solveInPlace(x);
  }
}

// Eigen does not reject nan: the factor is valid only if all numbers on the diagonal are above zero.
template <class T>
bool cholesky(T* a, int64_t n) {
  Map<T> matrix(a, n, n);
  const Eigen::LLT<Eigen::Ref<Rows<T>>> factor(matrix);
  return factor.info() == Eigen::Success && (matrix.diagonal().array() > 0).all();
}

template <class T>
void triangular_solve(const T* a, int64_t n, bool upper, bool unit, T* b, int64_t columns) {
  const ConstMap<T> matrix(a, n, n);
  Map<T> x(b, n, columns);
  if (upper && unit)
    matrix.template triangularView<Eigen::UnitUpper>().solveInPlace(x);
  else if (upper)
    matrix.template triangularView<Eigen::Upper>().solveInPlace(x);
  else if (unit)
    matrix.template triangularView<Eigen::UnitLower>().solveInPlace(x);
  else
    matrix.template triangularView<Eigen::Lower>().solveInPlace(x);
}

template <class T>
constexpr FactorKernels<T> kKernels = {lu<T>, lu_solve<T>, cholesky<T>, triangular_solve<T>};

}  // namespace

const FactorKernels<float>& factor_kernels(float) { return kKernels<float>; }
const FactorKernels<double>& factor_kernels(double) { return kKernels<double>; }

}  // namespace retrograd::cpu::RG_ISA
