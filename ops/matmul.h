// Matrix products: mm, bmm, mv, dot, addmm, baddbmm, linear as ops, matmul and outer made of them. A product is linear
// in each factor: with C = A B, dA = g B' and dB = A' g (' is the transpose). Each saves a factor only if the other one
// wants a gradient. Transposes are views; kernels read operands with any strides. Operands of a product have one dtype:
// nothing is promoted. Integers multiply but have no gradient; bool and float8 are refused. Errors of all: bad_dim
// (ranks), dtype_mismatch, shape_mismatch (inner or batch sizes). einsum and tensordot: ops/contraction.h.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// A product of two factors.
struct Product {
  using Attrs = NoAttrs;
  static constexpr int8_t arity = 2;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static constexpr auto saves = Saves::other;
  static constexpr bool bilinear = true;
};

/// (n, k) x (k, m) -> (n, m).
struct Mm : Product {
  static constexpr std::string_view name = "mm", doc = "product of two matrices";
  static constexpr auto cast_policy = CastPolicy::lower_precision;
  static constexpr std::string_view operands = "a, b";
  static constexpr std::string_view example = "f32[2,3], f32[3,4] : f32[2,4]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int i, const Tensor& g);
  static void batch(BatchContext& c);
};

/// (..., n, k) x (..., k, m) -> (..., n, m), with any number of equal batch dims.
struct Bmm : Product {
  static constexpr std::string_view name = "bmm", doc = "products of the matrices of two batches";
  static constexpr auto cast_policy = CastPolicy::lower_precision;
  static constexpr std::string_view operands = "a, b";
  static constexpr std::string_view example = "f32[5,2,3], f32[5,3,4] : f32[5,2,4]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int i, const Tensor& g);
  static constexpr auto batch = batch_leading;
};

/// (n, k) x (k) -> (n).
struct Mv : Product {
  static constexpr std::string_view name = "mv", doc = "product of a matrix and a vector";
  static constexpr auto cast_policy = CastPolicy::lower_precision;
  static constexpr std::string_view operands = "a, b";
  static constexpr std::string_view example = "f32[2,3], f32[3] : f32[2]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int i, const Tensor& g);
  static void batch(BatchContext& c);
};

/// (k) x (k) -> ().
struct Dot : Product {
  static constexpr std::string_view name = "dot", doc = "sum of the products of two vectors' elements";
  static constexpr auto cast_policy = CastPolicy::promote;
  static constexpr std::string_view operands = "a, b";
  static constexpr std::string_view example = "f32[3], f32[3] : f32[]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int i, const Tensor& g);
  static void batch(BatchContext& c);
};

/// beta * start + alpha * A B: operands start, A, B. With beta = 0, start is ignored, even if it is nan.
struct AddProduct {
  struct Attrs {
    Scalar beta, alpha;
    void visit(AttrVisitor& v) {
      v.field("beta", beta);
      v.field("alpha", alpha);
    }
  };
  static constexpr int8_t arity = 3;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static SaveSet saves_for(const Call& call, uint64_t wants);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

struct Addmm : AddProduct {
  static constexpr std::string_view name = "addmm", doc = "beta * input + alpha * mat1 @ mat2";
  static constexpr auto cast_policy = CastPolicy::lower_precision;
  static constexpr std::string_view operands = "input, mat1, mat2";
  static constexpr std::string_view example = "f32[2,4], f32[2,3], f32[3,4] {beta=0.5, alpha=2.0} : f32[2,4]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void batch(BatchContext& c);
};

struct Baddbmm : AddProduct {
  static constexpr std::string_view name = "baddbmm", doc = "beta * input + alpha * batch1 @ batch2";
  static constexpr auto cast_policy = CastPolicy::lower_precision;
  static constexpr std::string_view operands = "input, batch1, batch2";
  static constexpr std::string_view example =
      "f32[5,2,4], f32[5,2,3], f32[5,3,4] {beta=0.5, alpha=2.0} : f32[5,2,4]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void batch(BatchContext& c);
};

/// (..., k) x (m, k), and a bias (m) or none -> (..., m): input weight' + bias. The gradient of weight has
/// weight's layout.
struct Linear {
  using Attrs = NoAttrs;
  static constexpr std::string_view name = "linear", doc = "input @ weight.T + bias";
  static constexpr auto cast_policy = CastPolicy::lower_precision;
  static constexpr std::string_view operands = "input, weight, bias";
  static constexpr std::string_view example = "f32[2,3], f32[4,3], f32[4] : f32[2,4]";
  static constexpr int8_t arity = 3;
  static constexpr uint8_t optional = 4;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static void infer(const Call& call, TensorImpl* const* outputs);
  static SaveSet saves_for(const Call& call, uint64_t wants);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

using MatmulOps = OpList<Mm, Bmm, Mv, Dot, Addmm, Baddbmm, Linear>;

/// The product of matrices, or of batches of them with equal batch dims.
Tensor product(const Tensor& a, const Tensor& b, SourceLocation where);

}  // namespace ops

/// (n, k) x (k, m) -> (n, m).
Tensor mm(Operand input, Operand mat2);
/// (b, n, k) x (b, k, m) -> (b, n, m).
Tensor bmm(Operand input, Operand mat2);
/// (n, k) x (k) -> (n).
Tensor mv(Operand input, Operand vec);
/// (k) x (k) -> ().
Tensor dot(Operand input, Operand tensor);
/// The product by NumPy's rule: vectors count as a row (left) or a column (right), dims before the last two
/// are broadcast.
Tensor matmul(Operand input, Operand other);
/// beta * input + alpha * mat1 @ mat2; input is broadcast to the result. With alpha = 0 the values of the factors are
/// ignored, with beta = 0 those of input.
Tensor addmm(Operand input, const Tensor& mat1, const Tensor& mat2, Scalar beta = 1, Scalar alpha = 1);
Tensor baddbmm(Operand input, const Tensor& batch1, const Tensor& batch2, Scalar beta = 1, Scalar alpha = 1);
/// input (..., k) @ weight (m, k) transposed + bias (m), if given. weight (k) without a first dim gives (...).
Tensor linear(Operand input, const Tensor& weight, const Tensor& bias = {});
/// (n) x (m) -> (n, m): all products of two elements.
Tensor outer(Operand input, Operand vec2);

}  // namespace retrograd
#pragma GCC visibility pop
