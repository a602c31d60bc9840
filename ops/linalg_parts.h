// Shared by the files of the family ops/linalg.h: checks of type rules, and short names for derivatives, which are made
// of matrices in the last two dims and of one number per matrix.
#pragma once

#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/linalg.h"
#include "ops/matmul.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0::ops {

/// The dims before the last two.
Shape batch_of(const Shape& shape);

/// The shape of an operand that is a batch of square matrices of a dtype that the family has. Errors:
/// bad_dim, shape_mismatch, dtype_mismatch.
const Shape& check_square(const Call& call, int operand = 0);
/// Operand `other` is a batch (..., n, k) that fits operand 0, (..., n, n).
void check_fits(const Call& call, int other);
/// Operands 0, 1, 2 are a matrix and its factors; gives the matrix.
const TensorImpl& check_factors(const Call& call);

inline Tensor turned(const Tensor& x, SourceLocation where) { return transpose(Operand(x, where), -2, -1); }
/// Unit matrices, as a view of this shape.
Tensor eyes(const TensorType& type, SourceLocation where);

/// A matrix with the results of lu_factor.
struct Factors {
  Tensor a, lu, permutation;
};
/// Operands 0, 1, 2 as a rule sees them.
template <class Context>
Factors factors_of(Context& c) {
  return {c.in(0).tensor(), c.in(1).tensor(), c.in(2).tensor()};
}

inline Tensor lu_solve(const Factors& f, const Tensor& b, LuSolve::Attrs attrs, SourceLocation where) {
  return emit<LuSolve>({f.a.get(), f.lu.get(), f.permutation.get(), b.get()}, attrs, where);
}
inline Tensor triangular(const Tensor& a, const Tensor& b, SolveTriangular::Attrs attrs,
                         SourceLocation where) {
  return emit<SolveTriangular>({a.get(), b.get()}, attrs, where);
}

}  // namespace retrograd::ops
