// Views that select elements: slice, select, diagonal, unfold, as_strided, and functions made of them and of view() and
// permute().
//
// A view shares the memory of its operand. The transpose of every op here is one template, Transposed<View>: it writes
// its operand into zeros of the viewed type at the elements that the view shows, and adds where the view shows an
// element more than once. The two are each other's transposes, which closes the family under differentiation.
// as_strided is the view that works on memory rather than indices: its attributes also describe the layout of its
// operand, so that its gradient (and an in-place write through a view, see engine/inplace.h) can be computed on the
// flat buffer between them.
// Limits: strides are not negative; sizes and starts may be symbols, strides and offsets of as_strided are part of a
// graph's structure.
#pragma once

#include <optional>

#include "engine/geometry.h"
#include "ops/shape_ops.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// The transpose of view op V: the operand added into zeros of `size` at the elements that V shows.
template <class V>
struct Transposed {
  struct Attrs {
    typename V::Attrs view;
    Shape size;
    void visit(AttrVisitor& v) {
      view.visit(v);
      v.field("input_size", size);
    }
  };
  static constexpr std::string_view name = V::transposed_name,
                                    doc = "the operand added into zeros at the place of a view";
  static constexpr std::string_view operands = "g", example = V::transposed_example;
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static constexpr auto batch = V::batch_transposed;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int, const Tensor& g) {
    return V::of(g, c.attrs<Attrs>().view, c.where());
  }
};

/// A view whose transpose is Transposed<V>.
template <class V>
struct PickingView : View {
  static constexpr auto batch = batch_dims, batch_transposed = batch_dims;
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
  template <class A>
  static Tensor of(const Tensor& x, const A& attrs, SourceLocation where) {
    return emit<V>({x.get()}, attrs, where);
  }
};

struct SliceAttrs {
  int64_t dim;
  Dim start, length, step;
  void visit(AttrVisitor& v) {
    v.field("dim", dim);
    v.field("start", start);
    v.field("length", length);
    v.field("step", step);
  }
};

/// `length` entries of a dim, from `start` in steps.
struct Slice : PickingView<Slice> {
  using Attrs = SliceAttrs;
  static constexpr std::string_view name = "slice", transposed_name = "slice_backward", doc = "part of a dim";
  static constexpr std::string_view example = "f32[5,3] {dim=0, start=1, length=2, step=2} : f32[2,3]";
  static constexpr std::string_view transposed_example =
      "f32[2,3] {dim=0, start=1, length=2, step=2, input_size=[5,3]} : f32[5,3]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void layout(const Call& call, TensorImpl& output);
};

struct SelectAttrs {
  int64_t dim;
  Dim index;
  void visit(AttrVisitor& v) {
    v.field("dim", dim);
    v.field("index", index);
  }
};

/// One entry of a dim, without the dim.
struct Select : PickingView<Select> {
  using Attrs = SelectAttrs;
  static constexpr std::string_view name = "select", transposed_name = "select_backward",
                                    doc = "one entry of a dim";
  static constexpr std::string_view example = "f32[5,3] {dim=0, index=2} : f32[3]";
  static constexpr std::string_view transposed_example =
      "f32[3] {dim=0, index=2, input_size=[5,3]} : f32[5,3]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void layout(const Call& call, TensorImpl& output);
};

struct DiagonalAttrs {
  int64_t offset, dim1, dim2;
  void visit(AttrVisitor& v) {
    v.field("offset", offset);
    v.field("dim1", dim1);
    v.field("dim2", dim2);
  }
};

/// The elements with index(dim2) - index(dim1) = offset, as a last dim.
struct Diagonal : PickingView<Diagonal> {
  using Attrs = DiagonalAttrs;
  static constexpr std::string_view name = "diagonal", transposed_name = "diagonal_backward",
                                    doc = "a diagonal of two dims";
  static constexpr std::string_view example = "f32[3,4] {offset=1, dim1=0, dim2=1} : f32[3]";
  static constexpr std::string_view transposed_example =
      "f32[3] {offset=1, dim1=0, dim2=1, input_size=[3,4]} : f32[3,4]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void layout(const Call& call, TensorImpl& output);
};

struct UnfoldAttrs {
  int64_t dim;
  Dim size, step;
  void visit(AttrVisitor& v) {
    v.field("dimension", dim);
    v.field("size", size);
    v.field("step", step);
  }
};

/// All windows of a dim, the inside of a window as a last dim.
struct Unfold : PickingView<Unfold> {
  using Attrs = UnfoldAttrs;
  static constexpr std::string_view name = "unfold", transposed_name = "unfold_backward",
                                    doc = "windows of a dim";
  static constexpr std::string_view example = "f32[5] {dimension=0, size=3, step=2} : f32[2,3]";
  static constexpr std::string_view transposed_example =
      "f32[2,3] {dimension=0, size=3, step=2, input_size=[5]} : f32[5]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void layout(const Call& call, TensorImpl& output);
};

/// Error(index_out_of_range) unless the view shows only elements between the first and the last element of a base of
/// this shape: for ops that make that memory. Symbols count as their values at capture, so kernels check again.
void check_inside(const Call& call, const Geometry& geometry, const Shape& base);

struct AsStrided : View {
  using Attrs = Geometry;
  static constexpr std::string_view name = "as_strided", transposed_name = "as_strided_backward",
                                    doc = "a view by strides";
  static constexpr std::string_view example =
      "f32[3,4] {size=[2,3], stride=[4,1], offset=0, base_stride=[4,1], base_is_dense=true} : f32[2,3]";
  static constexpr std::string_view transposed_example =
      "f32[2,3] {size=[2,3], stride=[4,1], offset=0, base_stride=[], base_is_dense=true, input_size=[12]} : "
      "f32[12]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void layout(const Call& call, TensorImpl& output);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  /// A view of x in row-major memory; x is copied there if necessary.
  static Tensor of(const Tensor& x, const Geometry& geometry, SourceLocation where);
  static void batch(BatchContext& c);
  static void batch_transposed(BatchContext& c);
};

/// (base, value): base with the elements that the view shows replaced by value. The effect of an in-place write through
/// a view on its base.
struct AsStridedScatter {
  using Attrs = Geometry;
  static constexpr std::string_view name = "as_strided_scatter",
                                    doc = "a tensor with the elements of a view replaced";
  static constexpr std::string_view operands = "base, value";
  static constexpr std::string_view example =
      "f32[3,4], f32[2,3] {size=[2,3], stride=[4,1], offset=0, base_stride=[4,1], base_is_dense=true} : "
      "f32[3,4]";
  static constexpr int8_t arity = 2;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

using ViewOps = OpList<Slice, Select, Diagonal, Unfold, AsStrided, AsStridedScatter, Transposed<Slice>,
                       Transposed<Select>, Transposed<Diagonal>, Transposed<Unfold>, Transposed<AsStrided>>;

// The checked attributes of views by the arguments of their public functions; `op` is the function that errors name.
SliceAttrs slice_attrs(Operand x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                       int64_t step, std::string_view op);
SelectAttrs select_attrs(Operand x, int64_t dim, Dim index, std::string_view op);
DiagonalAttrs diagonal_attrs(Operand x, int64_t offset, int64_t dim1, int64_t dim2, std::string_view op);
/// A tensor whose memory as_strided() reads, x or a copy of it where x has no layout yet, and the view's place there.
struct Strided {
  Tensor base;
  Geometry geometry;
};
Strided strided(Operand x, const IntArray& size, const IntArray& stride,
                std::optional<int64_t> storage_offset, std::string_view op);

}  // namespace ops

/// Entries start .. start + length - 1 of `dim`; a negative start counts from the end. Errors: index_out_of_range,
/// bad_argument, bad_dim.
Tensor narrow(Operand input, int64_t dim, Dim start, Dim length);
/// Entry `index` of `dim`, without the dim. Error(index_out_of_range).
Tensor select(Operand input, int64_t dim, Dim index);
/// Python's input[start:end:step] along one dim; out-of-range bounds are clamped. step >= 1.
Tensor slice(Operand input, int64_t dim, std::optional<int64_t> start = {}, std::optional<int64_t> end = {},
             int64_t step = 1);
/// Drops dims of size 1: all of them, or those of the list that have size 1.
Tensor squeeze(Operand input);
Tensor squeeze(Operand input, int64_t dim);
Tensor squeeze(Operand input, const IntArray& dims);
/// A new dim of size 1 at `dim`, in [-rank - 1, rank].
Tensor unsqueeze(Operand input, int64_t dim);
/// Dims start_dim .. end_dim as one; a view where memory allows, else a copy.
Tensor flatten(Operand input, int64_t start_dim = 0, int64_t end_dim = -1);
Tensor broadcast_to(Operand input, const Shape& size);
/// Dims `source` moved to the positions `destination`, the others in their order.
Tensor movedim(Operand input, const IntArray& source, const IntArray& destination);
Tensor diagonal(Operand input, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
/// Windows of `size` in steps along `dimension`: [..., windows, ..., size].
Tensor unfold(Operand input, int64_t dimension, int64_t size, int64_t step);
/// A view of the storage, in elements; the offset defaults to the input's. Errors: index_out_of_range; bad_argument for
/// negative arguments and for strides above 2^48.
Tensor as_strided(Operand input, const IntArray& size, const IntArray& stride,
                  std::optional<int64_t> storage_offset = {});

/// Parts of a dim: of one size (the last may be smaller), or of the given sizes. In-place writes to the parts are
/// refused while they could need a gradient.
Tensors split(Operand input, Dim split_size, int64_t dim = 0);
Tensors split(Operand input, const IntArray& sections, int64_t dim = 0);
/// At most `chunks` parts of equal size; the last may be smaller. An empty dim gives exactly that many, up to 2^20.
Tensors chunk(Operand input, int64_t chunks, int64_t dim = 0);
/// All entries of a dim.
Tensors unbind(Operand input, int64_t dim = 0);

}  // namespace retrograd
#pragma GCC visibility pop
