// Copies with the elements of a view replaced: what a write through slice, select, diagonal or as_strided makes of its
// base, as functions. Also the diagonal matrices of vectors, which are such copies of zeros.
//
// The three ops are made from their views by one template: the type rule checks the value against what the view of the
// base gives, and the derivative by the value is the view of the gradient. as_strided_scatter is in ops/views.h, where
// writes in place need it.
// A value is converted to the dtype of the input. It is not broadcast: Error(shape_mismatch).
#pragma once

#include "ops/views.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// (base, value): base with the elements that view V shows replaced by value; `Op` is the op itself.
template <class V, class Op>
struct ViewScatter {
  using Attrs = typename V::Attrs;
  static constexpr std::string_view operands = "base, value";
  static constexpr int8_t arity = 2;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int i, const Tensor& g);
  static constexpr auto batch = batch_dims;
};

struct SliceScatter : ViewScatter<Slice, SliceScatter> {
  static constexpr std::string_view name = "slice_scatter", doc = "a tensor with part of a dim replaced";
  static constexpr std::string_view example =
      "f32[5,3], f32[2,3] {dim=0, start=1, length=2, step=2} : f32[5,3]";
};

struct SelectScatter : ViewScatter<Select, SelectScatter> {
  static constexpr std::string_view name = "select_scatter",
                                    doc = "a tensor with one entry of a dim replaced";
  static constexpr std::string_view example = "f32[5,3], f32[3] {dim=0, index=2} : f32[5,3]";
};

struct DiagonalScatter : ViewScatter<Diagonal, DiagonalScatter> {
  static constexpr std::string_view name = "diagonal_scatter", doc = "a tensor with a diagonal replaced";
  static constexpr std::string_view example = "f32[3,4], f32[3] {offset=1, dim1=0, dim2=1} : f32[3,4]";
};

using ViewScatterOps = OpList<SliceScatter, SelectScatter, DiagonalScatter>;

}  // namespace ops

/// `input` with slice(dim, start, end, step) replaced by src. Errors as for slice(). torch.slice_scatter.
Tensor slice_scatter(Operand input, const Tensor& src, int64_t dim = 0, std::optional<int64_t> start = {},
                     std::optional<int64_t> end = {}, int64_t step = 1);
/// `input` with select(dim, index) replaced by src. Errors as for select(). torch.select_scatter.
Tensor select_scatter(Operand input, const Tensor& src, int64_t dim, Dim index);
/// `input` with diagonal(offset, dim1, dim2) replaced by src. Errors as for diagonal(). torch.diagonal_scatter.
Tensor diagonal_scatter(Operand input, const Tensor& src, int64_t offset = 0, int64_t dim1 = 0,
                        int64_t dim2 = 1);
/// `input` with as_strided(size, stride, storage_offset) replaced by src. Errors as for as_strided();
/// index_out_of_range outside of the memory between the first and the last element of `input`, overlapping_write if
/// a stride is 0. torch.as_strided_scatter.
Tensor as_strided_scatter(Operand input, const Tensor& src, const IntArray& size, const IntArray& stride,
                          std::optional<int64_t> storage_offset = {});

/// The last dim as diagonals of matrices whose dims are dim1 and dim2 of the result, zeros elsewhere: the transpose of
/// diagonal(). Errors: bad_dim for dims out of range or the same, and for a number. torch.diag_embed.
Tensor diag_embed(Operand input, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
/// The matrix with all elements, in row-major order, as its diagonal. torch.diagflat.
Tensor diagflat(Operand input, int64_t offset = 0);

}  // namespace retrograd
#pragma GCC visibility pop
