// Reading and writing at positions that another tensor holds: gather, scatter, index_select, index_add, index_copy,
// masked_fill.
//
// Index tensors are int64 (the public functions convert int32), masks bool; they are the only operands that these rules
// save. The ops come in pairs that are each other's transposes: gather and scatter_add, index_select and index_add. For
// entries that are written more than once, additions happen in order of position (so results do not depend on threads),
// and of plain writes the last one counts. Functions that are made of these (getitem, index_put, take, masked_select,
// ...) are in ops/indexing.h.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct DimAttrs {
  int64_t dim;
  void visit(AttrVisitor& v) { v.field("dim", dim); }
};

struct Indexing {
  using Attrs = DimAttrs;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static SaveSet saves_for(const Call&, uint64_t) { return {uint64_t{2}, 0}; }  // the index
};

/// (x, index): out[.., i, ..] = x[.., index[.., i, ..], ..].
struct Gather : Indexing {
  static constexpr std::string_view name = "gather",
                                    doc = "entries of a dim, one for each element of the index";
  static constexpr std::string_view operands = "x, index";
  static constexpr std::string_view example = "f32[3,4], i64[2,4] {dim=0} : f32[2,4]";
  static constexpr int8_t arity = 2;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_dims;
};

/// (x, index, src): x with src added at the index.
struct ScatterAdd : Indexing {
  static constexpr std::string_view name = "scatter_add", doc = "src added at an index";
  static constexpr auto cast_policy = CastPolicy::promote;
  static constexpr std::string_view operands = "x, index, src";
  static constexpr std::string_view example = "f32[3,4], i64[2,4], f32[2,4] {dim=0} : f32[3,4]";
  static constexpr int8_t arity = 3;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_dims;
};

/// (x, index, src or number): x with src written at the index.
struct Scatter : Indexing {
  struct Attrs {
    int64_t dim;
    Scalar scalar;
    void visit(AttrVisitor& v) {
      v.field("dim", dim);
      v.field("scalar", scalar);
    }
  };
  static constexpr std::string_view name = "scatter", doc = "src written at an index";
  static constexpr std::string_view operands = "x, index, src";
  static constexpr std::string_view example = "f32[3,4], i64[2,4], f32[2,4] {dim=0} : f32[3,4]";
  static constexpr int8_t arity = 3;
  static constexpr uint8_t optional = 4;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_dims;
};

/// (x, index of one dim): whole entries of a dim.
struct IndexSelect : Indexing {
  static constexpr std::string_view name = "index_select", doc = "entries of a dim";
  static constexpr std::string_view operands = "x, index";
  static constexpr std::string_view example = "f32[3,4], i64[2] {dim=0} : f32[2,4]";
  static constexpr int8_t arity = 2;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

/// (g, index): g added at the index into zeros of `size`: index_add without the initial copy.
struct IndexSelectBackward : Indexing {
  struct Attrs {
    int64_t dim;
    Shape size;
    void visit(AttrVisitor& v) {
      v.field("dim", dim);
      v.field("size", size);
    }
  };
  static constexpr std::string_view name = "index_select_backward", doc = "entries added into zeros";
  static constexpr std::string_view operands = "g, index";
  static constexpr std::string_view example = "f32[2,4], i64[2] {dim=0, size=[3,4]} : f32[3,4]";
  static constexpr int8_t arity = 2;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

/// (x, index, source): x with entries of source added.
struct IndexAdd : Indexing {
  static constexpr std::string_view name = "index_add", doc = "entries added at an index";
  static constexpr std::string_view operands = "x, index, source";
  static constexpr std::string_view example = "f32[3,4], i64[2], f32[2,4] {dim=0} : f32[3,4]";
  static constexpr int8_t arity = 3;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

/// (x, index, source): x with entries of source written.
struct IndexCopy : Indexing {
  static constexpr std::string_view name = "index_copy", doc = "entries written at an index";
  static constexpr std::string_view operands = "x, index, source";
  static constexpr std::string_view example = "f32[3,4], i64[2], f32[2,4] {dim=0} : f32[3,4]";
  static constexpr int8_t arity = 3;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

/// (x, mask, value or number): value where the mask holds, else x. All of one shape.
struct MaskedFill : Indexing {
  struct Attrs {
    Scalar scalar;
    void visit(AttrVisitor& v) { v.field("scalar", scalar); }
  };
  static constexpr std::string_view name = "masked_fill", doc = "a value where a mask holds";
  static constexpr std::string_view operands = "x, mask, value";
  static constexpr std::string_view example = "f32[2,3], bool[2,3], f32[2,3] : f32[2,3]";
  static constexpr int8_t arity = 3;
  static constexpr uint8_t optional = 4;
  static constexpr uint32_t traits = Trait::pure | Trait::elementwise;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_leading;
};

using IndexOps =
    OpList<Gather, ScatterAdd, Scatter, IndexSelect, IndexSelectBackward, IndexAdd, IndexCopy, MaskedFill>;

/// `index` as int64. Error(dtype_mismatch) unless it is int64 or int32.
Tensor as_index(const Tensor& index, std::string_view op, SourceLocation where);

}  // namespace ops

/// out[i][j] = input[index[i][j]][j] for dim 0, and so on. The index has the input's rank and is not larger in any dim
/// but `dim`. Errors: dtype_mismatch, bad_dim, shape_mismatch, index_out_of_range (negative entries too).
Tensor gather(Operand input, int64_t dim, const Tensor& index);
/// input with src (or a number) written at input[index[i][j]][j]; src is at least as large as the index.
Tensor scatter(Operand input, int64_t dim, const Tensor& index, Operand src);
Tensor scatter_add(Operand input, int64_t dim, const Tensor& index, const Tensor& src);
/// Entries `index` (one dim, or a number) of `dim`.
Tensor index_select(Operand input, int64_t dim, const Tensor& index);
/// input with alpha * source[i] added at entry index[i] of `dim`; dtypes must be equal.
Tensor index_add(Operand input, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1);
/// input with source[i] written at entry index[i] of `dim`.
Tensor index_copy(Operand input, int64_t dim, const Tensor& index, const Tensor& source);
/// `value` (a number, or a 0-dim tensor) where `mask` holds; mask and input broadcast. Error(dtype_mismatch) unless the
/// mask is bool.
Tensor masked_fill(Operand input, const Tensor& mask, Operand value);

}  // namespace retrograd
#pragma GCC visibility pop
