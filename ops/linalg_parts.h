// Shared by the files of the family ops/linalg.h: checks of type rules, and short names for derivatives, which are made
// of matrices in the last two dims and of one number per matrix.
#pragma once

#include <array>

#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/linalg.h"
#include "ops/matmul.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0::ops {

/// The dims before the last two.
Shape batch_of(const Shape& shape);

/// The shape of an operand that is a batch of matrices of a dtype that the family has. Errors: bad_dim, dtype_mismatch.
const Shape& check_matrices(const Call& call, int operand = 0);
/// The same for square matrices. Error(shape_mismatch) for others.
const Shape& check_square(const Call& call, int operand = 0);
/// Operand `other` is a batch (..., n, k) that fits operand 0, (..., n, n).
void check_fits(const Call& call, int other);
/// Operands 0, 1, 2 are a matrix and its factors; gives the matrix.
const TensorImpl& check_factors(const Call& call);

/// All results of a call of `Op`.
template <class Op>
std::array<Tensor, Op::outputs> emit_all(std::initializer_list<TensorImpl*> operands,
                                         typename Op::Attrs attrs, SourceLocation where) {
  std::array<Tensor, Op::outputs> results;
  Emitter::current().emit(
      {&info<Op>, {operands.begin(), operands.size()}, &attrs, effective_location(where), Op::outputs},
      results.data());
  return results;
}

/// The number of rows, of columns, and the smaller one of a shape's matrices.
struct MatrixSizes {
  Dim rows, columns, least;
};
inline MatrixSizes matrix_sizes(const Shape& shape) {
  const Dim m = shape[shape.rank() - 2], n = shape.back();
  return {m, n, n < m ? n : m};
}
/// batch followed by sizes.
inline Shape with_sizes(const Shape& batch, std::initializer_list<Dim> sizes) {
  Shape shape = batch;
  for (const Dim size : sizes) shape.push_back(size);
  return shape;
}

/// The batch that the matrices of a and b broadcast to.
Shape common_batch(const Tensor& a, const Tensor& b, std::string_view op);
/// x with its batch dims expanded to `batch`, followed by its last `kept`.
Tensor expand_batch(const Tensor& x, const Shape& batch, int kept, SourceLocation where);
/// A and B are matrices of one dtype with sizes of a system A X = B, or X A = B. Errors: bad_dim, dtype_mismatch,
/// shape_mismatch.
void check_system(const Tensor& a, const Tensor& b, bool left, std::string_view op, SourceLocation where);
/// Whether B is one vector or a batch of them: PyTorch's rule.
bool is_vector(const Shape& a, const Shape& b);

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
