// Eigenvalues of symmetric matrices and singular values, with or without their vectors; matrices are in the last two
// dims.
//
// Derivatives exist where the values differ from each other: those of the vectors divide by the differences (M. Giles,
// Collected matrix derivative results for forward and reverse mode algorithmic differentiation, 2008). Vectors are
// determined up to their sign, and a function of them has a gradient if it does not depend on that. The gradient of a
// symmetric operand is symmetric, as cholesky's. With full_matrices the vectors beyond the first min(m, n) are
// determined up to a rotation among themselves, and the same holds for functions of them. The derivatives of the values
// alone decompose the operand again, for the vectors.
//
// float64 and float32. Dims before the last two are a batch; one thread decomposes each entry. A matrix with elements
// that are not finite gives nan. Errors of all: bad_dim (fewer than two dims), shape_mismatch (not square, for eigh
// and eigvalsh), dtype_mismatch.
#pragma once

#include "ops/linalg.h"
#include "ops/named_tensors.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// Base of the decompositions of a symmetric operand.
struct Symmetric : LinearAlgebra {
  struct Attrs {
    bool upper;  // the triangle that is read
    void visit(AttrVisitor& v) { v.field("upper", upper); }
  };
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr int8_t arity = 1;
};

/// (..., n, n) -> eigenvalues (..., n), ascending, and eigenvectors (..., n, n), the columns.
struct Eigh : Symmetric {
  static constexpr std::string_view name = "eigh", doc = "eigenvalues and eigenvectors of a symmetric matrix";
  static constexpr std::string_view example = "f32[3,3] {upper=false} : f32[3], f32[3,3]";
  static constexpr int8_t outputs = 2;
  static constexpr auto saves = Saves::result;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// (..., n, n) -> (..., n), ascending.
struct Eigvalsh : Symmetric {
  static constexpr std::string_view name = "eigvalsh", doc = "eigenvalues of a symmetric matrix";
  static constexpr std::string_view example = "f32[3,3] {upper=false} : f32[3]";
  static constexpr auto saves = Saves::operands;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// (..., m, n) -> U (..., m, k), S (..., k), descending, Vh (..., k, n), k = min(m, n); full_matrices: U and Vh are
/// square.
struct Svd : LinearAlgebra {
  struct Attrs {
    bool full_matrices;
    void visit(AttrVisitor& v) { v.field("full_matrices", full_matrices); }
  };
  static constexpr std::string_view name = "svd", doc = "singular values and vectors of a matrix";
  static constexpr std::string_view example = "f32[2,3] {full_matrices=false} : f32[2,2], f32[2], f32[2,3]";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr int8_t arity = 1, outputs = 3;
  static constexpr auto saves = Saves::result;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// (..., m, n) -> (..., min(m, n)), descending.
struct Svdvals : LinearAlgebra {
  static constexpr std::string_view name = "svdvals", doc = "singular values of a matrix";
  static constexpr std::string_view example = "f32[2,3] : f32[2]";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr int8_t arity = 1;
  static constexpr auto saves = Saves::operands;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

using SpectralOps = OpList<Eigh, Eigvalsh, Svd, Svdvals>;

}  // namespace ops

namespace linalg {

RG_NAMED_PAIR(EighResult, eigenvalues, eigenvectors);
/// A = V diag(w) V' of a symmetric (..., n, n): w (..., n), ascending, and V (..., n, n). UPLO names the triangle that
/// is read, "L" or "U": Error(bad_argument) for others.
EighResult eigh(Operand A, std::string_view UPLO = "L");
/// The eigenvalues alone.
Tensor eigvalsh(Operand A, std::string_view UPLO = "L");

RG_NAMED_TRIPLE(SvdResult, U, S, Vh);
/// A = U diag(S) Vh of (..., m, n): S (..., k), descending, k = min(m, n); U (..., m, m), Vh (..., n, n), or without
/// full_matrices U (..., m, k), Vh (..., k, n).
SvdResult svd(Operand A, bool full_matrices = true);
/// The singular values alone.
Tensor svdvals(Operand A);
/// (..., m, n) -> int64 (...): how many singular values (hermitian: absolute eigenvalues of a symmetric A) are above
/// max(atol, rtol * the largest). Defaults: atol 0, rtol max(m, n) * the epsilon of the dtype, or 0 if atol > 0. No
/// gradient.
Tensor matrix_rank(Operand A, std::optional<double> atol = {}, std::optional<double> rtol = {},
                   bool hermitian = false);

}  // namespace linalg
}  // namespace retrograd
#pragma GCC visibility pop
