// Cofactors by Eigen's LU with full pivoting: see cpu/kernels/cofactor.h for the mathematics.
//
// Decomposition<T> is A = X D Y; outward() and inward() apply X and Y from both sides. Products<T> has, for
// each element of the diagonal, the products of those on either side of it, so that nothing is divided. The
// file is compiled once, for the baseline: it serves matrices that are singular or nearly so, and derivatives
// of second order.
#include "cpu/kernels/cofactor.h"

#include <Eigen/LU>

namespace retrograd::inline v0::cpu {
namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Map = Eigen::Map<Matrix<T>>;
template <class T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

// P A Q = L D U with unit triangles: A = X D Y with X = P' L and Y = U Q'.
template <class T>
class Decomposition {
 public:
  explicit Decomposition(const Eigen::Ref<const Matrix<T>>& a) : lu_(a), u_(lu_.matrixLU()) {
    d_ = u_.diagonal();
    for (Eigen::Index i = 0; i < d_.size(); ++i)
      if (d_[i] != 0) u_.row(i) /= d_[i];
    const auto sign = lu_.permutationP().determinant() * lu_.permutationQ().determinant();
    sign_ = static_cast<T>(sign);
  }

  const Vector<T>& diagonal() const { return d_; }

  /// inverse(X) e inverse(Y).
  Matrix<T> inward(const Matrix<T>& e) const {
    Matrix<T> f = lu_.permutationP() * e * lu_.permutationQ();
    lu_.matrixLU().template triangularView<Eigen::UnitLower>().solveInPlace(f);
    u_.template triangularView<Eigen::UnitUpper>().template solveInPlace<Eigen::OnTheRight>(f);
    return f;
  }

  /// cof(X) c cof(Y), which is det X det Y inverse(X)' c inverse(Y)'.
  Matrix<T> outward(Matrix<T> c) const {
    lu_.matrixLU().transpose().template triangularView<Eigen::UnitUpper>().solveInPlace(c);
    u_.transpose().template triangularView<Eigen::UnitLower>().template solveInPlace<Eigen::OnTheRight>(c);
    return sign_ * (lu_.permutationP().inverse() * c * lu_.permutationQ().inverse());
  }

 private:
  Eigen::FullPivLU<Matrix<T>> lu_;
  Matrix<T> u_;
  Vector<T> d_;
  T sign_;
};

// before[i] and after[i]: the products of the elements of d on the two sides of element i.
template <class T>
struct Products {
  Vector<T> before, after;
  explicit Products(const Vector<T>& d) : before(d.size()), after(d.size()) {
    const Eigen::Index n = d.size();
    for (Eigen::Index i = 0; i < n; ++i) before[i] = i ? before[i - 1] * d[i - 1] : T{1};
    for (Eigen::Index i = n - 1; i >= 0; --i) after[i] = i < n - 1 ? after[i + 1] * d[i + 1] : T{1};
  }
};

template <class T>
void cofactors_of(T* data, int64_t n) {
  if (n == 0) return;
  Map<T> a(data, n, n);
  const Decomposition<T> x(a);
  const Products<T> p(x.diagonal());
  a = x.outward(p.before.cwiseProduct(p.after).asDiagonal());
}

// With f = inverse(X) e inverse(Y) and d(i, j) the product of all of D but elements i and j, the derivative
// of cof(D) has -d(i, j) f(j, i) off the diagonal and the sum over k of d(i, k) f(k, k) on it.
template <class T>
void derivative_of(const T* data, T* direction, int64_t n) {
  if (n == 0) return;
  Map<T> e(direction, n, n);
  const Decomposition<T> x(Eigen::Map<const Matrix<T>>(data, n, n));
  const Products<T> p(x.diagonal());
  const Matrix<T> f = x.inward(e);
  Matrix<T> c = Matrix<T>::Zero(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    T product = p.before[i];
    for (Eigen::Index j = i + 1; j < n; ++j) {
      const T rest = product * p.after[j];
      c(i, j) = -rest * f(j, i);
      c(j, i) = -rest * f(i, j);
      c(i, i) += rest * f(j, j);
      c(j, j) += rest * f(i, i);
      product *= x.diagonal()[j];
    }
  }
  e = x.outward(std::move(c));
}

}  // namespace

void cofactors(float* a, int64_t n) { cofactors_of(a, n); }
void cofactors(double* a, int64_t n) { cofactors_of(a, n); }
void cofactor_derivative(const float* a, float* e, int64_t n) { derivative_of(a, e, n); }
void cofactor_derivative(const double* a, double* e, int64_t n) { derivative_of(a, e, n); }

}  // namespace retrograd::cpu
