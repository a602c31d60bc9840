// Decompositions, functions of matrices, and products beyond matmul.
#include "ops/factorizations.h"
#include "ops/matrix_functions.h"
#include "ops/products.h"
#include "ops/spectral.h"
#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

std::pair<Tensor, Tensor> eigh_pair(Operand A, std::string_view UPLO) {
  const linalg::EighResult r = linalg::eigh(A, UPLO);
  return {r.eigenvalues, r.eigenvectors};
}
std::tuple<Tensor, Tensor, Tensor> svd_parts(Operand A, bool full_matrices) {
  const linalg::SvdResult r = linalg::svd(A, full_matrices);
  return {r.U, r.S, r.Vh};
}
std::pair<Tensor, Tensor> qr_pair(Operand A, std::string_view mode) {
  const linalg::QrResult r = linalg::qr(A, mode);
  return {r.Q, r.R};
}
std::pair<Tensor, Tensor> lu_factor_pair(Operand A) {
  const linalg::LuFactorResult r = linalg::lu_factor(A);
  return {r.LU, r.pivots};
}
Tensor pinv_of(Operand A, std::optional<double> rtol, bool hermitian) {
  return linalg::pinv(A, {}, rtol, hermitian);
}
Tensor matrix_rank_of(Operand A, std::optional<double> rtol, bool hermitian) {
  return linalg::matrix_rank(A, {}, rtol, hermitian);
}
// "inf" is a number, other words are names of norms.
Tensor matrix_norm_of(Operand A, const Json& ord, const IntArray& dim, bool keepdim) {
  if (ord.is_number()) return linalg::matrix_norm(A, ord.get<double>(), dim, keepdim);
  const std::string name = ord.get<std::string>();
  if (name == "inf" || name == "-inf") return linalg::matrix_norm(A, std::stod(name), dim, keepdim);
  return linalg::matrix_norm(A, name, dim, keepdim);
}
Tensor multi_dot_of(const Tensors& tensors) { return linalg::multi_dot(tensors); }

constexpr Binding kBindings[] = {
    {"eigh", call<eigh_pair>},
    {"eigvalsh", call<linalg::eigvalsh>},
    {"svd", call<svd_parts>},
    {"svdvals", call<linalg::svdvals>},
    {"matrix_rank", call<matrix_rank_of>},
    {"qr", call<qr_pair>},
    {"lu_factor", call<lu_factor_pair>},
    {"lu_solve", call<linalg::lu_solve>},
    {"cholesky_solve", call<cholesky_solve>},
    {"cholesky_inverse", call<cholesky_inverse>},
    {"matrix_exp", call<matrix_exp>},
    {"pinv", call<pinv_of>},
    {"lstsq", call<linalg::lstsq>},
    {"matrix_norm", call<matrix_norm_of>},
    {"cross", call<linalg::cross>},
    {"vecdot", call<linalg::vecdot>},
    {"multi_dot", call<multi_dot_of>},
    {"inner", call<inner>},
    {"addbmm", call<addbmm>},
    {"addmv", call<addmv>},
    {"addr", call<addr>},
};

}  // namespace

BindingList decomposition_bindings() { return kBindings; }

}  // namespace retrograd::conformance
