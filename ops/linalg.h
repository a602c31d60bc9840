// Linear algebra on matrices in the last two dims: inverse, determinants, Cholesky factor, linear systems.
//
// det, slogdet and solve factor A once, P A = L U, by the op lu_factor, and compute from the factors, with ops
//   lu_det(A, LU, P), lu_slogdet(A, LU, P), lu_solve(A, LU, P, B), cofactor(A, LU, P).
// The factors count as constants: the derivative by operand A contains everything that depends on A. So the backward of
// a solve solves with the same factors, and that holds to any order. inverse and cholesky save only their result.
//
// The gradient of det is the matrix of cofactors, which exists for every A, also a singular one; it is computed without
// dividing by values that may be zero, and so is its own derivative. Derivatives of third order need an invertible A.
// The gradient of slogdet is A's inverse transposed, inf or nan if A is singular. The gradient of cholesky is
// PyTorch's, symmetric (I. Murray, Differentiation of the Cholesky decomposition, 2016): its operand is symmetric,
// though only one triangle is read.
//
// float64 and float32. Dims before the last two are a batch; one thread computes each entry. Errors of all: bad_dim
// (fewer than two dims), shape_mismatch (not square, or sizes that do not fit), dtype_mismatch.
#pragma once

#include "ops/named_tensors.h"
#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct LinearAlgebra {
  using Attrs = NoAttrs;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static constexpr auto batch = batch_leading;
};

/// (..., n, n) -> LU (..., n, n), U on and above the diagonal and L below it; and int32 (..., n): row i of A
/// is row p[i] of L U. Pivots may be zero.
struct LuFactor : LinearAlgebra {
  static constexpr std::string_view name = "lu_factor", doc = "LU factors with partial pivoting",
                                    no_derivative =
                                        "its results represent their operand: ops that use "
                                        "the factors differentiate with respect to it";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view example = "f32[3,3] : f32[3,3], i32[3]";
  static constexpr int8_t arity = 1, outputs = 2;
  static void infer(const Call& call, TensorImpl* const* outputs);
};

/// Base of ops that take A and its factors as operands 0, 1, 2.
struct OfFactors : LinearAlgebra {
  static constexpr int8_t arity = 3;
  static constexpr auto saves = Saves::operands;
};

/// The X of A X = B, or of A' X = B. Operands A, LU, P, B (..., n, k), all of one batch.
struct LuSolve : OfFactors {
  struct Attrs {
    bool transposed;
    bool check;  // singular_matrix rather than inf and nan
    void visit(AttrVisitor& v) {
      v.field("transposed", transposed);
      v.field("check", check);
    }
  };
  static constexpr std::string_view name = "lu_solve", doc = "solution of a linear system with LU factors";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view operands = "a, lu, p, b";
  static constexpr std::string_view example =
      "f32[3,3], f32[3,3], i32[3], f32[3,2] {transposed=false, check=false} : f32[3,2]";
  static constexpr int8_t arity = 4;
  static SaveSet saves_for(const Call&, uint64_t wants) { return {7, wants & 1}; }
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// (...): the determinant.
struct LuDet : OfFactors {
  static constexpr std::string_view name = "lu_det", doc = "determinant of a matrix with LU factors";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view operands = "a, lu, p";
  static constexpr std::string_view example = "f32[3,3], f32[3,3], i32[3] : f32[]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// (...) and (...): sign and logarithm of the absolute value of the determinant.
struct LuSlogdet : OfFactors {
  static constexpr std::string_view name = "lu_slogdet",
                                    doc = "sign and log of the determinant of a matrix with LU factors";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view operands = "a, lu, p";
  static constexpr std::string_view example = "f32[3,3], f32[3,3], i32[3] : f32[], f32[]";
  static constexpr int8_t outputs = 2;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// The derivative of det: element (i, j) is (-1)^(i+j) times the minor without row i and column j.
struct Cofactor : OfFactors {
  static constexpr std::string_view name = "cofactor",
                                    doc = "matrix of cofactors of a matrix with LU factors";
  static constexpr std::string_view operands = "a, lu, p";
  static constexpr std::string_view example = "f32[3,3], f32[3,3], i32[3] : f32[3,3]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// Operands A, E: the derivative of A's cofactors in the direction E. Linear in E and, as a map of E, its own
/// transpose.
struct CofactorDerivative : LinearAlgebra {
  static constexpr std::string_view name = "cofactor_derivative",
                                    doc = "derivative of the cofactors in a direction";
  static constexpr std::string_view operands = "a, e";
  static constexpr std::string_view example = "f32[3,3], f32[3,3] : f32[3,3]";
  static constexpr int8_t arity = 2;
  static constexpr auto saves = Saves::operands;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

struct Inverse : LinearAlgebra {
  static constexpr std::string_view name = "inverse", doc = "inverse matrix";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view example = "f32[3,3] : f32[3,3]";
  static constexpr int8_t arity = 1;
  static constexpr auto saves = Saves::result;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// A = L L' with L lower, or A = U' U with U upper; reads that triangle of A only.
struct Cholesky : LinearAlgebra {
  struct Attrs {
    bool upper;
    void visit(AttrVisitor& v) { v.field("upper", upper); }
  };
  static constexpr std::string_view name = "cholesky", doc = "Cholesky factor of a symmetric matrix";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view example = "f32[3,3] {upper=false} : f32[3,3]";
  static constexpr int8_t arity = 1;
  static constexpr auto saves = Saves::result;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// The X of T X = B, T a triangle of A. Operands A, B (..., n, k), of one batch.
struct SolveTriangular : LinearAlgebra {
  struct Attrs {
    bool upper, unitriangular;
    void visit(AttrVisitor& v) {
      v.field("upper", upper);
      v.field("unitriangular", unitriangular);
    }
  };
  static constexpr std::string_view name = "solve_triangular", doc = "solution of a triangular system";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view operands = "a, b";
  static constexpr std::string_view example =
      "f32[3,3], f32[3,2] {upper=true, unitriangular=false} : f32[3,2]";
  static constexpr int8_t arity = 2;
  static SaveSet saves_for(const Call&, uint64_t wants) { return {1, wants & 1}; }
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

using LinalgOps = OpList<LuFactor, LuSolve, LuDet, LuSlogdet, Cofactor, CofactorDerivative, Inverse, Cholesky,
                         SolveTriangular>;

}  // namespace ops

/// (..., n, n). Error(singular_matrix), which names the batch entry.
Tensor inverse(Operand input);
/// (..., n, n) -> (...).
Tensor det(Operand input);
RG_NAMED_PAIR(SlogdetResult, sign, logabsdet);
/// Sign (-1, 0, 1; no gradient) and log |det|, -inf for a singular matrix.
SlogdetResult slogdet(Operand input);
/// log det; nan where det is negative.
Tensor logdet(Operand input);
/// The factor of a symmetric positive definite (..., n, n): lower with A = L L', or upper with A = U' U. Only
/// that triangle of A is read. Error(not_positive_definite), which names the batch entry.
Tensor cholesky(Operand input, bool upper = false);
/// The X of A X = B, or of X A = B without `left`. A (..., n, n), B (..., n, k), or (..., k, n) without
/// `left`, batches broadcast. B is a vector, or a batch of vectors, when it has one dim or A's shape without
/// the last dim; so is X then. Error(singular_matrix), which names the batch entry.
Tensor solve(Operand A, Operand B, bool left = true);
/// The same for a triangular A, of which one triangle is read (`unitriangular`: with ones in place of the diagonal). B
/// has at least two dims. A singular A gives inf or nan.
Tensor solve_triangular(Operand A, Operand B, bool upper, bool left = true, bool unitriangular = false);
/// Sum of the diagonal of a matrix; int64 for integers. Error(bad_dim) unless there are two dims.
Tensor trace(Operand input);
/// The n-th power of (..., m, m), by repeated squaring; n < 0: of the inverse.
Tensor matrix_power(Operand input, int64_t n);

}  // namespace retrograd
#pragma GCC visibility pop
