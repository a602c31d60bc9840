// Decompositions by Eigen for one instruction-set level: see cpu/kernels/levels/decompose.h.
//
// Eigen is renamed per level by the build (tools/isa.bzl), so levels share no templates. Its decompositions work on
// column-major copies: blocks of Householder reflections are applied to columns. The exponential is ours: scaling and
// squaring with Pade approximants (N. Higham, The scaling and squaring method for the matrix exponential revisited,
// 2005).
#include "cpu/kernels/levels/decompose.h"

#include <Eigen/LU>
#include <Eigen/QR>

#include "cpu/kernels/levels/eigen_maps.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

// ---- triangular factors -------------------------------------------------------------------------------------------

template <class T>
void qr(const T* a, int64_t m, int64_t n, bool complete, T* q, T* r) {
  const ConstMap<T> rows(a, m, n);
  const int64_t k = complete ? m : n;
  if (!rows.allFinite()) {
    fill_nan(q, m, k);
    fill_nan(r, k, n);
    return;
  }
  const Eigen::HouseholderQR<Columns<T>> factors{Columns<T>(rows)};
  Columns<T> orthonormal = Columns<T>::Identity(m, k);
  orthonormal.applyOnTheLeft(factors.householderQ());
  Map<T>(q, m, k) = orthonormal;
  Map<T>(r, k, n) = factors.matrixQR().topRows(k).template triangularView<Eigen::Upper>();
}

// Eigen's class for this is for square matrices. The function that it calls is not, except that it asserts a number of
// exchanges, of which it makes min(m, n).
template <class T>
void lu(T* a, int64_t m, int64_t n, int32_t* pivots) {
  Map<T> matrix(a, m, n);
  Eigen::Transpositions<Eigen::Dynamic, Eigen::Dynamic, int32_t> rows(n);
  int32_t exchanges = 0;
  Eigen::internal::partial_lu_inplace(matrix, rows, exchanges);
  for (int64_t i = 0; i < m && i < n; ++i) pivots[i] = rows.coeff(i);
}

template <class T>
void lstsq(const T* a, int64_t m, int64_t n, const T* b, int64_t columns, T* x) {
  const ConstMap<T> matrix(a, m, n), right(b, m, columns);
  if (!matrix.allFinite()) return fill_nan(x, n, columns);
  Eigen::CompleteOrthogonalDecomposition<Columns<T>> factors;
  factors.setThreshold(Eigen::NumTraits<T>::epsilon() * static_cast<T>(m > n ? m : n));
  factors.compute(matrix);
  Map<T>(x, n, columns) = factors.solve(right);
}

// ---- exponential --------------------------------------------------------------------------------------------------

// The Pade approximant of exp of order (d, d) is q(-a)^-1 q(a); q has these coefficients, from that of a^0. It is exact
// up to rounding for matrices with a 1-norm of at most `bound`.
struct Pade {
  int degree;
  double bound, coefficients[14];
};
constexpr Pade kPade3 = {3, 1.495585217958292e-2, {120, 60, 12, 1}},
               kPade5 = {5, 2.539398330063230e-1, {30240, 15120, 3360, 420, 30, 1}},
               kPade7 = {7, 9.504178996162932e-1, {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}},
               kPade13 = {
                   13,
                   5.371920351148152,
                   {64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
                    10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1}};
constexpr Pade kFloatPade3 = {3, 4.258730016922831e-1, {120, 60, 12, 1}},
               kFloatPade5 = {5, 1.880152677804762, {30240, 15120, 3360, 420, 30, 1}},
               kFloatPade7 = {7, 3.925724783138660, {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}};

const Pade& pade_for(float norm) {
  return norm <= kFloatPade3.bound ? kFloatPade3 : norm <= kFloatPade5.bound ? kFloatPade5 : kFloatPade7;
}
const Pade& pade_for(double norm) {
  return norm <= kPade3.bound   ? kPade3
         : norm <= kPade5.bound ? kPade5
         : norm <= kPade7.bound ? kPade7
                                : kPade13;
}

template <class T>
Columns<T> approximated_exp(const Columns<T>& a, const Pade& pade) {
  const int64_t n = a.rows();
  const auto coefficient = [&](int i) { return static_cast<T>(pade.coefficients[i]); };
  Columns<T> even = Columns<T>::Identity(n, n) * coefficient(0),
             odd = Columns<T>::Identity(n, n) * coefficient(1);
  const Columns<T> square = a * a;
  Columns<T> power = square;
  for (int i = 2; i < pade.degree; i += 2) {
    if (i > 2) power = Columns<T>(power * square);
    even += coefficient(i) * power;
    odd += coefficient(i + 1) * power;
  }
  const Columns<T> odd_part = a * odd;
  return (even - odd_part).partialPivLu().solve(even + odd_part);
}

template <class T>
void matrix_exp(const T* a, int64_t n, T* out) {
  const ConstMap<T> matrix(a, n, n);
  const T norm = matrix.cwiseAbs().colwise().sum().maxCoeff();
  if (!matrix.allFinite() || !(norm <= Eigen::NumTraits<T>::highest())) return fill_nan(out, n, n);
  const Pade& pade = pade_for(norm);
  int squarings = 0;
  T scale = 1;
  for (const T bound = static_cast<T>(pade.bound); norm * scale > bound; scale /= 2) ++squarings;
  Columns<T> result = approximated_exp<T>(matrix * scale, pade);
  for (; squarings > 0; --squarings) result = Columns<T>(result * result);
  Map<T>(out, n, n) = result;
}

template <class T>
constexpr DecompositionKernels<T> kKernels = {qr<T>, lu<T>, lstsq<T>, matrix_exp<T>};

}  // namespace

const DecompositionKernels<float>& decomposition_kernels(float) { return kKernels<float>; }
const DecompositionKernels<double>& decomposition_kernels(double) { return kKernels<double>; }

}  // namespace retrograd::cpu::RG_ISA
