// The exponential of a matrix, the pseudo-inverse, least squares and norms of matrices; matrices are in the last two
// dims.
//
// Derivatives. That of the exponential in a direction E is a block of the exponential of ((A, E), (0, A)) (R. Mathias,
// A chain rule for matrix functions and applications, 1996). Those of the pseudo-inverse and of least squares hold
// where the rank does not change (G. Golub, V. Pereyra, The differentiation of pseudo-inverses and nonlinear least
// squares problems whose variables separate, 1973); they need no differences of singular values.
//
// float64 and float32; matrix_exp takes 16 bits, too, and computes in float32. Dims before the last two are a batch;
// one thread computes each entry. A matrix with elements that are not finite gives nan. Errors of all: bad_dim (fewer
// than two dims), shape_mismatch, dtype_mismatch.
#pragma once

#include "ops/linalg.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// (..., n, n) -> (..., n, n).
struct MatrixExp : LinearAlgebra {
  static constexpr std::string_view name = "matrix_exp", doc = "exponential of a matrix";
  static constexpr std::string_view example = "f32[3,3] : f32[3,3]";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr int8_t arity = 1;
  static constexpr auto saves = Saves::operands;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// (..., m, n) -> (..., n, m). Singular values up to max(atol, rtol * the largest) count as zero; rtol below 0: max(m,
/// n) times the epsilon of the dtype. hermitian: by eigenvalues, from the lower triangle.
struct Pinv : LinearAlgebra {
  struct Attrs {
    Scalar atol, rtol;
    bool hermitian;
    void visit(AttrVisitor& v) {
      v.field("atol", atol);
      v.field("rtol", rtol);
      v.field("hermitian", hermitian);
    }
  };
  static constexpr std::string_view name = "pinv", doc = "pseudo-inverse of a matrix";
  static constexpr std::string_view example = "f32[3,2] {atol=0.0, rtol=-1.0, hermitian=false} : f32[2,3]";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr int8_t arity = 1;
  static constexpr auto saves = Saves::both;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// A (..., m, n), B (..., m, k), of one batch -> X (..., n, k).
struct Lstsq : LinearAlgebra {
  static constexpr std::string_view name = "lstsq", doc = "least squares solution of a linear system";
  static constexpr std::string_view operands = "a, b";
  static constexpr std::string_view example = "f32[3,2], f32[3,4] : f32[2,4]";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr int8_t arity = 2;
  static SaveSet saves_for(const Call&, uint64_t wants) {
    return {wants & 1 ? uint64_t{3} : uint64_t{1}, wants & 1};
  }
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

using MatrixFunctionOps = OpList<MatrixExp, Pinv, Lstsq>;

}  // namespace ops

/// The exponential of (..., n, n).
Tensor matrix_exp(Operand input);

namespace linalg {

using retrograd::matrix_exp;

/// The (..., n, m) pseudo-inverse of (..., m, n); hermitian: of a symmetric A, whose lower triangle is read. Singular
/// values up to max(atol, rtol * the largest) count as zero. Defaults: atol 0, rtol max(m, n) * the epsilon of the
/// dtype, or 0 if atol > 0.
Tensor pinv(Operand A, std::optional<double> atol = {}, std::optional<double> rtol = {},
            bool hermitian = false);
/// The X (..., n, k) of least norm among those that minimise the norm of A X - B; A (..., m, n), B (..., m, k), batches
/// broadcast. B is a vector, or a batch of vectors, when it has one dim or A's shape without the last dim; so is X
/// then.
Tensor lstsq(Operand A, Operand B);

/// A norm of the matrices in `dim`, which are removed, or kept with size 1: ord 1 and -1 are the largest and smallest
/// sum of a column's absolute values, inf and -inf those of a row, 2 and -2 the largest and smallest singular value.
/// 0 for matrices without elements. Errors: bad_dim, bad_argument (ord, or a `dim` without two entries),
/// dtype_mismatch (no float; 16 bits where singular values are wanted).
Tensor matrix_norm(Operand A, Scalar ord, const IntArray& dim = {-2, -1}, bool keepdim = false);
/// ord "fro": the root of the sum of squares; "nuc": the sum of singular values.
Tensor matrix_norm(Operand A, std::string_view ord = "fro", const IntArray& dim = {-2, -1},
                   bool keepdim = false);
/// For literals, which would convert to a number as well.
inline Tensor matrix_norm(Operand A, const char* ord, const IntArray& dim = {-2, -1}, bool keepdim = false) {
  return matrix_norm(A, std::string_view(ord), dim, keepdim);
}

}  // namespace linalg
}  // namespace retrograd
#pragma GCC visibility pop
