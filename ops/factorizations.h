// QR and LU factors of matrices of any shape, in the last two dims, and systems with given LU or Cholesky factors.
//
// Derivatives: of Q and R, S. Walter, L. Lehmann, R. Lamour, On evaluating higher-order derivatives of the QR
// decomposition (2012); of L and U with the pivots as constants, F. de Hoog, R. Anderssen, M. Lukas, Differentiation of
// matrix functionals using triangular factorization (2011). Both need a triangle, R or U, without zeros on its
// diagonal. A wide matrix has the QR factors of its first columns; Q' times the others is the rest of R. So the op qr
// is for matrices with at least as many rows as columns. Systems are made of solve_triangular and of rows in the order
// of the pivots (pivot_order), whose derivatives are theirs.
//
// float64 and float32. Dims before the last two are a batch; one thread factors each entry. Errors of all: bad_dim
// (fewer than two dims), shape_mismatch, dtype_mismatch.
#pragma once

#include "ops/linalg.h"
#include "ops/named_tensors.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// (..., m, n), m >= n -> Q (..., m, n) with orthonormal columns, R (..., n, n); complete: (..., m, m), (..., m, n),
/// which has a derivative for m = n only.
struct Qr : LinearAlgebra {
  struct Attrs {
    bool complete;
    void visit(AttrVisitor& v) { v.field("complete", complete); }
  };
  static constexpr std::string_view name = "qr",
                                    doc = "QR factors of a matrix with as many rows as columns, or more";
  static constexpr std::string_view example = "f32[3,2] {complete=false} : f32[3,2], f32[2,2]";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr int8_t arity = 1, outputs = 2;
  static constexpr auto saves = Saves::result;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// (..., m, n) -> LU (..., m, n), U on and above the diagonal and L below it; and int32 pivots (..., min(m, n)): row i
/// was exchanged with row pivots[i] - 1. Error(singular_matrix) for a zero on U's diagonal.
struct PivotedLu : LinearAlgebra {
  static constexpr std::string_view name = "pivoted_lu",
                                    doc = "LU factors and pivots of a matrix of any shape";
  static constexpr std::string_view example = "f32[3,2] : f32[3,2], i32[2]";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr int8_t arity = 1, outputs = 2;
  static constexpr auto saves = Saves::result;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// int32 pivots (..., k) of a matrix with `rows` rows -> int64 (..., rows): row i of L U is row order[i] of A; inverse:
/// the other way round. Error(bad_argument) for a pivot that is no row.
struct PivotOrder : LinearAlgebra {
  struct Attrs {
    Dim rows;
    bool inverse;
    void visit(AttrVisitor& v) {
      v.field("rows", rows);
      v.field("inverse", inverse);
    }
  };
  static constexpr std::string_view name = "pivot_order", doc = "the order of rows that pivots lead to",
                                    no_derivative = "it is made of integers";
  static constexpr std::string_view operands = "pivots";
  static constexpr std::string_view example = "i32[3] {rows=3, inverse=false} : i64[3]";
  static constexpr int8_t arity = 1;
  static void infer(const Call& call, TensorImpl* const* outputs);
};

using FactorizationOps = OpList<Qr, PivotedLu, PivotOrder>;

}  // namespace ops

namespace linalg {

RG_NAMED_PAIR(QrResult, Q, R);
/// A = Q R of (..., m, n), with k = min(m, n): Q (..., m, k) with orthonormal columns, R (..., k, n) upper triangular;
/// "complete": k = m; "r": R alone, and a Q without elements. Error(bad_argument) for another mode. No gradient for
/// "complete" with m > n: Error(unsupported) in the backward.
QrResult qr(Operand A, std::string_view mode = "reduced");

RG_NAMED_PAIR(LuFactorResult, LU, pivots);
/// P A = L U of (..., m, n), with rows exchanged for the largest element of each column: U on and above the diagonal of
/// LU (..., m, n), L without its ones below it. Row i was exchanged with row pivots[i] - 1: int32 (..., min(m, n)).
/// Error(singular_matrix), which names the batch entry, if U's diagonal has a zero.
LuFactorResult lu_factor(Operand A);
/// The X of A X = B, or of X A = B without `left`, with the factors of A (adjoint: of A'). B has at least two dims;
/// batches broadcast. A zero on U's diagonal gives inf or nan. Errors: dtype_mismatch (pivots not int32),
/// shape_mismatch, bad_argument (a pivot that is no row).
Tensor lu_solve(Operand LU, const Tensor& pivots, const Tensor& B, bool left = true, bool adjoint = false);

}  // namespace linalg

/// The X of A X = B, A = L L', or L' L with `upper`; L (..., n, n), of which that triangle is read; B (..., n, k);
/// batches broadcast. A zero on L's diagonal gives inf or nan.
Tensor cholesky_solve(Operand B, const Tensor& L, bool upper = false);
/// The inverse of L L', or of L' L with `upper`. A zero on L's diagonal gives inf or nan.
Tensor cholesky_inverse(Operand L, bool upper = false);

}  // namespace retrograd
#pragma GCC visibility pop
