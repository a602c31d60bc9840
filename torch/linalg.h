// torch::linalg and torch::special, and the names linalg_NAME, which libtorch has as well.
#pragma once

#include "ops/factorizations.h"
#include "ops/linalg.h"
#include "ops/matrix_functions.h"
#include "ops/products.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/special.h"
#include "ops/spectral.h"
#include "ops/unary.h"
#include "torch/types.h"

#pragma GCC visibility push(default)
namespace torch {

#define RG_TORCH_UNARY(NAME, FUNCTION) \
  inline Tensor NAME(const retrograd::Operand& x) { return FUNCTION(x); }
namespace linalg {
using namespace retrograd::linalg;
using retrograd::cholesky;
using retrograd::det;
using retrograd::matrix_power;
using retrograd::slogdet;
using retrograd::solve;
using retrograd::solve_triangular;
RG_TORCH_UNARY(inv, retrograd::inverse)
}  // namespace linalg
RG_TORCH_UNARY(linalg_det, retrograd::det)
RG_TORCH_UNARY(linalg_inv, retrograd::inverse)
RG_TORCH_UNARY(linalg_matrix_exp, retrograd::matrix_exp)
RG_TORCH_UNARY(linalg_pinv, retrograd::linalg::pinv)
RG_TORCH_UNARY(pinverse, retrograd::linalg::pinv)
RG_TORCH_UNARY(linalg_svdvals, retrograd::linalg::svdvals)
RG_TORCH_UNARY(linalg_matrix_rank, retrograd::linalg::matrix_rank)
inline retrograd::linalg::SvdResult linalg_svd(const retrograd::Operand& A, bool full_matrices = true) {
  return retrograd::linalg::svd(A, full_matrices);
}
/// (U, S, V), not V transposed; `some`: without the vectors that belong to no singular value.
inline std::tuple<Tensor, Tensor, Tensor> svd(const retrograd::Operand& A, bool some = true) {
  const auto [U, S, Vh] = retrograd::linalg::svd(A, !some);
  return {U, S, Vh.mT()};
}
inline retrograd::linalg::EighResult linalg_eigh(const retrograd::Operand& A, std::string_view UPLO = "L") {
  return retrograd::linalg::eigh(A, UPLO);
}
inline Tensor linalg_eigvalsh(const retrograd::Operand& A, std::string_view UPLO = "L") {
  return retrograd::linalg::eigvalsh(A, UPLO);
}
inline Tensor linalg_vector_norm(const retrograd::Operand& x, Scalar ord = 2,
                                 const retrograd::IntList& dim = {}, bool keepdim = false) {
  return retrograd::vector_norm(x, ord, dim, keepdim);
}
/// Of vectors for one dim or none and no `ord`, of matrices for two.
Tensor linalg_norm(const retrograd::Operand& A, std::optional<Scalar> ord = {},
                   const retrograd::IntList& dim = {}, bool keepdim = false);
/// ord: "fro" or "nuc".
inline Tensor linalg_norm(const retrograd::Operand& A, std::string_view ord,
                          const retrograd::IntArray& dim = {-2, -1}, bool keepdim = false) {
  return retrograd::linalg::matrix_norm(A, ord, dim, keepdim);
}
inline Tensor linalg_norm(const retrograd::Operand& A, const char* ord,
                          const retrograd::IntArray& dim = {-2, -1}, bool keepdim = false) {
  return retrograd::linalg::matrix_norm(A, ord, dim, keepdim);
}
/// (solution, residuals, rank, singular values). As with libtorch's driver for the CPU the second and the last have no
/// elements.
std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const retrograd::Operand& A,
                                                        const retrograd::Operand& B);
/// ord: "fro" or "nuc".
inline Tensor linalg_matrix_norm(const retrograd::Operand& A, std::string_view ord,
                                 const retrograd::IntArray& dim = {-2, -1}, bool keepdim = false) {
  return retrograd::linalg::matrix_norm(A, ord, dim, keepdim);
}
inline Tensor linalg_matrix_norm(const retrograd::Operand& A, const char* ord = "fro",
                                 const retrograd::IntArray& dim = {-2, -1}, bool keepdim = false) {
  return retrograd::linalg::matrix_norm(A, ord, dim, keepdim);
}
inline Tensor linalg_matrix_norm(const retrograd::Operand& A, Scalar ord,
                                 const retrograd::IntArray& dim = {-2, -1}, bool keepdim = false) {
  return retrograd::linalg::matrix_norm(A, ord, dim, keepdim);
}
/// Of the elements along one or two dims.
inline Tensor frobenius_norm(const retrograd::Operand& A, const retrograd::IntList& dim,
                             bool keepdim = false) {
  return retrograd::vector_norm(A, 2, dim, keepdim);
}
inline Tensor nuclear_norm(const retrograd::Operand& A, const retrograd::IntArray& dim,
                           bool keepdim = false) {
  return retrograd::linalg::matrix_norm(A, "nuc", dim, keepdim);
}
inline Tensor nuclear_norm(const retrograd::Operand& A, bool keepdim = false) {
  return nuclear_norm(A, {-2, -1}, keepdim);
}
inline Tensor linalg_multi_dot(const retrograd::Tensors& tensors) {
  return retrograd::linalg::multi_dot(tensors);
}
inline Tensor chain_matmul(const retrograd::Tensors& matrices) {
  return matrices.size() == 1 ? matrices.front() : retrograd::linalg::multi_dot(matrices);
}
inline Tensor linalg_vecdot(const retrograd::Operand& x, const retrograd::Operand& y, int64_t dim = -1) {
  return retrograd::linalg::vecdot(x, y, dim);
}
inline Tensor linalg_matmul(const retrograd::Operand& a, const retrograd::Operand& b) {
  return retrograd::matmul(a, b);
}
inline Tensor linalg_solve(const retrograd::Operand& A, const retrograd::Operand& B, bool left = true) {
  return retrograd::solve(A, B, left);
}
inline Tensor linalg_solve_triangular(const retrograd::Operand& A, const retrograd::Operand& B, bool upper,
                                      bool left = true, bool unitriangular = false) {
  return retrograd::solve_triangular(A, B, upper, left, unitriangular);
}
/// (X, A) with A X = b, or A' X = b with `transpose`.
inline std::tuple<Tensor, Tensor> triangular_solve(const retrograd::Operand& b, const retrograd::Operand& A,
                                                   bool upper = true, bool transpose = false,
                                                   bool unitriangular = false) {
  const Tensor coefficients = retrograd::clone(A);
  return {retrograd::solve_triangular(transpose ? coefficients.mT() : coefficients, b, upper != transpose,
                                      true, unitriangular),
          coefficients};
}
inline Tensor linalg_cholesky(const retrograd::Operand& A, bool upper = false) {
  return retrograd::cholesky(A, upper);
}
inline retrograd::linalg::QrResult linalg_qr(const retrograd::Operand& A, std::string_view mode = "reduced") {
  return retrograd::linalg::qr(A, mode);
}
inline retrograd::SlogdetResult linalg_slogdet(const retrograd::Operand& A) { return retrograd::slogdet(A); }
inline Tensor linalg_matrix_power(const retrograd::Operand& A, int64_t n) {
  return retrograd::matrix_power(A, n);
}
inline Tensor linalg_cross(const retrograd::Operand& a, const retrograd::Operand& b, int64_t dim = -1) {
  return retrograd::linalg::cross(a, b, dim);
}

namespace special {
using namespace retrograd::special;
using retrograd::digamma;
using retrograd::erf;
using retrograd::erfc;
using retrograd::erfinv;
using retrograd::exp2;
using retrograd::expm1;
using retrograd::log1p;
using retrograd::log_softmax;
using retrograd::logit;
using retrograd::logsumexp;
using retrograd::polygamma;
using retrograd::round;
using retrograd::sinc;
using retrograd::softmax;
using retrograd::xlogy;
RG_TORCH_UNARY(expit, retrograd::sigmoid)
RG_TORCH_UNARY(gammaln, retrograd::lgamma)
RG_TORCH_UNARY(psi, retrograd::digamma)
}  // namespace special
#undef RG_TORCH_UNARY

}  // namespace torch
#pragma GCC visibility pop
