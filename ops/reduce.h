// Reductions: sum, mean, prod, extremes and their positions, variance, logsumexp, norms, counts.
//
// A reduction's attributes list its dims wrapped, sorted and completely ("all" is never implied), so rules and kernels
// read them directly. Saved sets and formulas are PyTorch's (derivatives.yaml), so that saved-tensor hooks see the same
// tensors. In formulas n is the number of reduced elements, and a bar over a result means: expanded to the operand's
// shape (expand_reduced). Start reading at Sum. Scans along a dim are in ops/scan.h.
#pragma once

#include <optional>

#include "ops/op.h"
#include "ops/values_and_indices.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct ReduceAttrs {
  IntList dim;  // wrapped and sorted; all dims are listed, never implied
  bool keepdim = false;
  void visit(AttrVisitor& v) {
    v.field("dim", dim);
    v.field("keepdim", keepdim);
  }
};

struct Reduce {
  using Attrs = ReduceAttrs;
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static void infer(const Call& call, TensorImpl* const* outputs);  // the operand's dtype
  static constexpr auto batch = batch_dims;
};

struct Sum : Reduce {
  static constexpr std::string_view name = "sum", doc = "sum over dims";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false} : f32[2]";
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
};

struct Mean : Reduce {
  static constexpr std::string_view name = "mean", doc = "mean over dims";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false} : f32[2]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
};

/// Over one dim or all. The derivative is y / x, and the product of the other elements where x is 0.
struct Prod : Reduce {
  static constexpr std::string_view name = "prod", doc = "product over dims";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false} : f32[2]";
  static constexpr Saves saves = Saves::both;
  template <class C>
  static Tensor slope(C& c);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// The gradient is split evenly among ties.
struct ExtremeAttrs : ReduceAttrs {
  // The gradient of a NaN result goes to the NaNs, as in max() and min(); if false, it is NaN.
  bool nan_ties = false;
  void visit(AttrVisitor& v) {
    ReduceAttrs::visit(v);
    v.field("nan_ties", nan_ties);
  }
};

struct Extreme : Reduce {
  using Attrs = ExtremeAttrs;
  static constexpr Saves saves = Saves::both;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};
struct Amax : Extreme {
  static constexpr std::string_view name = "amax", doc = "largest element over dims";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false, nan_ties=false} : f32[2]";
};
struct Amin : Extreme {
  static constexpr std::string_view name = "amin", doc = "smallest element over dims";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false, nan_ties=false} : f32[2]";
};

/// Values and indices of the extremes along one dim; the gradient goes to the indices. Of ties the first counts.
struct ExtremeAlong : Reduce {
  static constexpr int8_t outputs = 2;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static SaveSet saves_for(const Call&, uint64_t) { return {0, 2}; }
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};
struct MaxAlong : ExtremeAlong {
  static constexpr std::string_view name = "max", doc = "largest element along a dim, and its index";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false} : f32[2], i64[2]";
};
struct MinAlong : ExtremeAlong {
  static constexpr std::string_view name = "min", doc = "smallest element along a dim, and its index";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false} : f32[2], i64[2]";
};

struct ExtremeIndex : Reduce {
  static constexpr std::string_view no_derivative = "an index is constant almost everywhere";
  static void infer(const Call& call, TensorImpl* const* outputs);
};
struct Argmax : ExtremeIndex {
  static constexpr std::string_view name = "argmax", doc = "index of the largest element";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false} : i64[2]";
};
struct Argmin : ExtremeIndex {
  static constexpr std::string_view name = "argmin", doc = "index of the smallest element";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false} : i64[2]";
};

struct VarianceAttrs : ReduceAttrs {
  Scalar correction = 1;
  void visit(AttrVisitor& v) {
    ReduceAttrs::visit(v);
    v.field("correction", correction);
  }
};

/// sum((x - mean)^2) / (n - correction).
struct Var : Reduce {
  using Attrs = VarianceAttrs;
  static constexpr std::string_view name = "var", doc = "variance over dims";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false, correction=1} : f32[2]";
  static constexpr Saves saves = Saves::operands;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

struct Std : Var {
  static constexpr std::string_view name = "std", doc = "standard deviation over dims";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false, correction=1} : f32[2]";
  static constexpr Saves saves = Saves::both;
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

struct LogSumExp : Reduce {
  static constexpr std::string_view name = "logsumexp", doc = "log(sum(exp(x))) over dims";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false} : f32[2]";
  static constexpr Saves saves = Saves::both;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

struct NormAttrs : ReduceAttrs {
  Scalar ord = 2;
  void visit(AttrVisitor& v) {
    ReduceAttrs::visit(v);
    v.field("ord", ord);
  }
};

/// sum(|x|^ord)^(1/ord); the largest or smallest |x| for an infinite ord, the number of nonzeros for 0.
struct VectorNorm : Reduce {
  using Attrs = NormAttrs;
  static constexpr std::string_view name = "vector_norm", doc = "p-norm over dims";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false, ord=2} : f32[2]";
  static constexpr Saves saves = Saves::both;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

struct Count : Reduce {
  static constexpr std::string_view no_derivative = "a count is constant almost everywhere";
};
struct All : Count {
  static constexpr std::string_view name = "all", doc = "whether all elements are nonzero";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false} : bool[2]";
  static void infer(const Call& call, TensorImpl* const* outputs);
};
struct Any : All {
  static constexpr std::string_view name = "any", doc = "whether any element is nonzero";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false} : bool[2]";
};
struct CountNonzero : Count {
  static constexpr std::string_view name = "count_nonzero", doc = "number of nonzero elements";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false} : i64[2]";
  static void infer(const Call& call, TensorImpl* const* outputs);
};

using ReduceOps = OpList<Sum, Mean, Prod, Amax, Amin, MaxAlong, MinAlong, Argmax, Argmin, Var, Std, LogSumExp,
                         VectorNorm, All, Any, CountNonzero>;

/// The shape after reducing `dim` of `shape`, and the number of elements that are reduced to one.
Shape reduced_shape(const Shape& shape, const IntList& dim, bool keepdim);
Dim reduced_numel(const Shape& shape, const IntList& dim);
/// dims wrapped and sorted; empty means all dims. Error(bad_dim) when out of range or repeated.
IntList reduction_dims(const IntList& dims, int rank, std::string_view op);
/// A value of the reduced shape, expanded to `shape` by repetition.
Tensor expand_reduced(const Tensor& g, const Shape& shape, const IntList& dim, bool keepdim,
                      SourceLocation where);
/// Error(dtype_mismatch) unless the operand is of float64, float32, float16 or bfloat16.
void check_floating(const Call& call);

}  // namespace ops

// Shapes: the reduced dims are dropped, or have size 1 with keepdim. An empty `dim` means all dims. Errors: bad_dim for
// a dim out of range or repeated, dtype_mismatch for integers where floats are needed.

/// Sum and mean over `dim`, of the elements converted to `dtype` if that is given. Integers sum to int64;
/// they have no mean.
Tensor sum(Operand input, const IntList& dim = {}, bool keepdim = false,
           std::optional<ScalarType> dtype = {});
Tensor mean(Operand input, const IntList& dim = {}, bool keepdim = false,
            std::optional<ScalarType> dtype = {});
/// The product of all elements, or along one dim. Integers give int64.
Tensor prod(Operand input, std::optional<ScalarType> dtype = {});
Tensor prod(Operand input, int64_t dim, bool keepdim = false, std::optional<ScalarType> dtype = {});

/// Extremes; NaN if there is one. Error(bad_argument) when there is no element. The gradient is split evenly among
/// ties. If the extreme is NaN, max and min split it among the NaNs; the gradient of amax and amin is NaN then.
Tensor amax(Operand input, const IntList& dim = {}, bool keepdim = false);
Tensor amin(Operand input, const IntList& dim = {}, bool keepdim = false);
Tensor max(Operand input);
Tensor min(Operand input);
/// Values and int64 indices of the extremes along a dim; of ties the first counts; the gradient goes to the indices.
ValuesAndIndices max(Operand input, int64_t dim, bool keepdim = false);
ValuesAndIndices min(Operand input, int64_t dim, bool keepdim = false);
/// The int64 index of the extreme along `dim`, or among all elements in row-major order; of ties the first counts.
Tensor argmax(Operand input, std::optional<int64_t> dim = {}, bool keepdim = false);
Tensor argmin(Operand input, std::optional<int64_t> dim = {}, bool keepdim = false);

/// sum((x - mean)^2) / max(0, n - correction), and its root.
Tensor var(Operand input, const IntList& dim = {}, Scalar correction = 1, bool keepdim = false);
Tensor std(Operand input, const IntList& dim = {}, Scalar correction = 1, bool keepdim = false);
/// Of all elements, with correction 1 if `unbiased`, else 0.
inline Tensor var(Operand input, Flag unbiased) { return var(input, {}, unbiased.value); }
inline Tensor std(Operand input, Flag unbiased) { return std(input, {}, unbiased.value); }
/// log(sum(exp(x))) without overflow; integers give float32.
Tensor logsumexp(Operand input, const IntList& dim, bool keepdim = false);
/// (sum |x|^ord)^(1/ord), max |x| for inf, min |x| for -inf, the number of nonzeros for 0. norm is PyTorch's
/// older name.
Tensor vector_norm(Operand x, Scalar ord = 2, const IntList& dim = {}, bool keepdim = false);
Tensor norm(Operand input, Scalar p = 2, const IntList& dim = {}, bool keepdim = false);

/// Whether all or any elements are nonzero: bool (uint8 stays uint8).
Tensor all(Operand input, const IntList& dim = {}, bool keepdim = false);
Tensor any(Operand input, const IntList& dim = {}, bool keepdim = false);
/// int64.
Tensor count_nonzero(Operand input, const IntList& dim = {});

}  // namespace retrograd
#pragma GCC visibility pop
