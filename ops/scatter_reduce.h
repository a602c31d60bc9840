// Elements that go to the same place of a tensor, reduced to one: scatter_reduce and index_reduce.
//
// One op serves both: the index of index_reduce is expanded, as a view, to the shape of the source, and kernels read an
// index in any layout. Elements of a place are reduced in order of position, so results do not depend on threads; those
// of floating dtypes in double (ops/accumulated.h), rounded once. The sum with the elements that are there is
// scatter_add.
//
// The gradient of a product is divided out of it. That is impossible for factors that are 0, infinite or NaN: of these
// the first two of each place are left out of the product explicitly, so that values, first and second derivatives are
// right with any number of zeros; derivatives of third order are not where three factors of a place are 0.
#pragma once

#include <string_view>

#include "ops/index_ops.h"
#include "ops/scatter_reduction.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// (x, index, src of the shape of the index): x with the elements of src that the index sends to a place reduced there,
/// together with that of x or, without include_self, without it.
struct ScatterReduce {
  struct Attrs {
    int64_t dim;
    int64_t reduce;  // a ScatterReduction
    bool include_self;
    ScatterReduction how() const { return static_cast<ScatterReduction>(reduce); }
    void visit(AttrVisitor& v) {
      v.field("dim", dim);
      v.field("reduce", reduce);
      v.field("include_self", include_self);
    }
  };
  static constexpr std::string_view name = "scatter_reduce", doc = "src reduced at an index";
  static constexpr std::string_view operands = "x, index, src";
  static constexpr std::string_view example =
      "f32[3,4], i64[2,4], f32[2,4] {dim=0, reduce=1, include_self=true} : f32[3,4]";
  static constexpr int8_t arity = 3;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static SaveSet saves_for(const Call& call, uint64_t wants);
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_dims;
};

using ScatterReduceOps = OpList<ScatterReduce>;

}  // namespace ops

/// `input` with the elements src[i][j] reduced into input[index[i][j]][j] for dim 0, and so on. reduce: sum, prod,
/// mean, amax or amin; the elements of `input` take part only with `include_self`. The mean of integers is rounded
/// down; NaN is both extremes, whose gradient is split evenly among ties. Index and src have the input's rank; the
/// index is not larger than src, nor, except in `dim`, than the input. Errors: bad_argument for another reduction,
/// dtype_mismatch (different dtypes, the mean of bool), bad_dim, shape_mismatch, index_out_of_range.
/// torch.scatter_reduce.
Tensor scatter_reduce(Operand input, int64_t dim, const Tensor& index, const Tensor& src,
                      std::string_view reduce, bool include_self = true);
/// The same for whole entries: source[i] reduced into entry index[i] of `dim`. reduce: prod, mean, amax or amin. Errors
/// as above. torch.index_reduce.
Tensor index_reduce(Operand input, int64_t dim, const Tensor& index, const Tensor& source,
                    std::string_view reduce, bool include_self = true);

}  // namespace retrograd
#pragma GCC visibility pop
