// Products of vectors and matrices beyond ops/matmul.h. cross is an op; the others are made of products and sums, and
// round 16-bit results once. Nothing is promoted, except by addr. Errors of all: bad_dim (ranks), dtype_mismatch (of
// operands with each other; bool), shape_mismatch.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// Vectors of three entries along `dim` of two tensors of one shape. The gradient of a is b x g, that of b is g x a.
struct Cross {
  struct Attrs {
    int64_t dim;
    void visit(AttrVisitor& v) { v.field("dim", dim); }
  };
  static constexpr std::string_view name = "cross", doc = "cross products of vectors of three entries";
  static constexpr std::string_view operands = "a, b";
  static constexpr std::string_view example = "f32[2,3], f32[2,3] {dim=1} : f32[2,3]";
  static constexpr auto cast_policy = CastPolicy::promote;
  static constexpr int8_t arity = 2;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static constexpr auto saves = Saves::other;
  static constexpr bool bilinear = true;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int i, const Tensor& g);
  static constexpr auto batch = batch_dims;
};

using ProductOps = OpList<Cross>;

}  // namespace ops

/// beta * input + alpha * the sum of batch1 (b, n, k) @ batch2 (b, k, m); input is broadcast to (n, m). With alpha = 0
/// the values of the factors are ignored, with beta = 0 those of input.
Tensor addbmm(Operand input, const Tensor& batch1, const Tensor& batch2, Scalar beta = 1, Scalar alpha = 1);
/// beta * input + alpha * mat (n, k) @ vec (k); input is broadcast to (n).
Tensor addmv(Operand input, const Tensor& mat, const Tensor& vec, Scalar beta = 1, Scalar alpha = 1);
/// beta * input + alpha * the outer product of vec1 (n) and vec2 (m); input is broadcast to (n, m). Operands are
/// promoted.
Tensor addr(Operand input, const Tensor& vec1, const Tensor& vec2, Scalar beta = 1, Scalar alpha = 1);
/// (..., k) and (..., k): sums of products over the last dims, of shape (the other dims of both); the product if one of
/// them has no dims.
Tensor inner(Operand input, Operand other);

namespace linalg {

/// Cross products along `dim`, of size 3 in both operands, which have equally many dims and broadcast in the others.
Tensor cross(Operand input, Operand other, int64_t dim = -1);
/// Sums of products along `dim`, of one size in both operands, which broadcast in the others. Floating dtypes.
Tensor vecdot(Operand x, Operand y, int64_t dim = -1);
/// The product of two or more matrices, in the order that takes the fewest multiplications. The first may be a vector
/// (a row) and the last one, too (a column). Error(bad_argument) for fewer than two.
Tensor multi_dot(const Tensors& tensors, SourceLocation where = SourceLocation::current());

}  // namespace linalg
}  // namespace retrograd
#pragma GCC visibility pop
