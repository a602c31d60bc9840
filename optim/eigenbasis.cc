// See optim/eigenbasis.h.
#include "optim/eigenbasis.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <limits>

#include "engine/runner.h"
#include "ops/creation.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0::optim::detail {
namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Map = Eigen::Map<Matrix<T>>;

// Base of the ops: Op::find(a, q) writes the basis of a.
template <class Op>
struct Basis {
  using Attrs = ops::NoAttrs;
  static constexpr std::string_view no_derivative = "a basis counts as a constant";
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = Trait::pure | Trait::fresh;

  static void infer(const Call& call, TensorImpl* const* outputs) {
    const TensorImpl& a = *call.operands[0];
    if (a.dtype() != kFloat32 && a.dtype() != kFloat64)
      fail_call(call, Category::dtype_mismatch, "float32 or float64 wanted");
    if (a.rank() != 2 || !(a.shape()[0] == a.shape()[1]))
      fail_call(call, Category::shape_mismatch, "a square matrix wanted");
    outputs[0]->set_type(a.dtype(), a.device(), a.shape());
  }

  static void run_on_host(const Call& call, Tensor* results) {
    const RefPtr<TensorImpl> type = TensorImpl::make();
    TensorImpl* cell = type.get();
    infer(call, &cell);  // checks
    const Emitter::Scope now(eager_runner());
    const Tensor given(RefPtr<TensorImpl>(call.operands[0])), a = contiguous(to(given, kCPU)),
                                                              q = empty_like(a);
    a.dtype() == kFloat32 ? run<float>(a, q) : run<double>(a, q);
    results[0] = given.device() == kCPU ? q : to(q, given.device());
  }

 private:
  template <class T>
  static void run(const Tensor& a, const Tensor& q) {
    const Eigen::Index n = a.sizes()[0];
    if (n == 0) return;
    const Eigen::Map<const Matrix<T>> from(static_cast<const T*>(a.impl().data()), n, n);
    Map<T> to(static_cast<T*>(q.impl().data()), n, n);
    if (!from.allFinite() || !Op::find(from, to)) to.setConstant(std::numeric_limits<T>::quiet_NaN());
  }
};

struct Eigenvectors : Basis<Eigenvectors> {
  static constexpr std::string_view name = "eigenvectors", doc = "eigenvectors of a symmetric matrix";
  template <class From, class To>
  static bool find(const From& a, To& q) {
    const Eigen::SelfAdjointEigenSolver<typename To::PlainObject> solver(a);
    q = solver.eigenvectors().rowwise().reverse();  // Eigen has the smallest eigenvalues first
    return solver.info() == Eigen::Success;
  }
};

struct OrthonormalColumns : Basis<OrthonormalColumns> {
  static constexpr std::string_view name = "orthonormal_columns", doc = "the Q of the QR factors of a matrix";
  template <class From, class To>
  static bool find(const From& a, To& q) {
    q = Eigen::HouseholderQR<typename To::PlainObject>(a).householderQ();
    return true;
  }
};

}  // namespace

Tensor eigenvectors(const Tensor& symmetric, SourceLocation where) {
  return ops::emit<Eigenvectors>({symmetric.get()}, {}, where);
}

Tensor orthonormal_columns(const Tensor& matrix, SourceLocation where) {
  return ops::emit<OrthonormalColumns>({matrix.get()}, {}, where);
}

}  // namespace retrograd::optim::detail
