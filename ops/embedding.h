// Rows of a table: embedding, and one_hot.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct EmbeddingAttrs {
  int64_t padding_idx = -1;  // the row that gets no gradient; -1: none
  // Gradients are divided by the number of times that their row is in the index.
  bool scale_grad_by_freq = false;
  bool without_padding = false;  // zeros for the padding row: the derivative of embedding_backward
  void visit(AttrVisitor& v) {
    v.field("padding_idx", padding_idx);
    v.field("scale_grad_by_freq", scale_grad_by_freq);
    v.field("without_padding", without_padding);
  }
};

/// (index of any shape, weight [rows, width]): index.shape + [width].
struct Embedding {
  using Attrs = EmbeddingAttrs;
  static constexpr std::string_view name = "embedding", doc = "rows of a table";
  static constexpr std::string_view operands = "index, weight";
  static constexpr std::string_view example =
      "i64[2,3], f32[5,4] {padding_idx=-1, scale_grad_by_freq=false, without_padding=false} : f32[2,3,4]";
  static constexpr int8_t arity = 2;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static SaveSet saves_for(const Call&, uint64_t) { return {uint64_t{1}, 0}; }
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

/// (index, g): g added to rows of zeros, in order of position. As in PyTorch its own derivative omits the scaling by
/// frequency, so that second derivatives under scale_grad_by_freq are PyTorch's rather than the mathematical ones. An
/// unused one may be dropped: an embedding has checked the index.
struct EmbeddingBackward {
  struct Attrs {
    EmbeddingAttrs embedding;
    Dim rows;
    void visit(AttrVisitor& v) {
      embedding.visit(v);
      v.field("rows", rows);
    }
  };
  static constexpr std::string_view name = "embedding_backward", doc = "rows added into a table of zeros";
  static constexpr std::string_view operands = "index, g";
  static constexpr std::string_view example =
      "i64[2,3], f32[2,3,4] {padding_idx=-1, scale_grad_by_freq=false, without_padding=false, rows=5} : "
      "f32[5,4]";
  static constexpr int8_t arity = 2;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static SaveSet saves_for(const Call&, uint64_t) { return {uint64_t{1}, 0}; }
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

/// (x, index, g): x + embedding_backward(index, g), with the same bits, but without the table of zeros. Passes make it
/// for a table that gets gradients both as an embedding and as a matrix. x is as large as the table, and the result may
/// use its memory.
struct EmbeddingAdd {
  using Attrs = EmbeddingAttrs;
  static constexpr std::string_view name = "embedding_add", doc = "sums of rows added to a table";
  static constexpr std::string_view operands = "x, index, g";
  static constexpr std::string_view example =
      "f32[5,4], i64[2,3], f32[2,3,4] {padding_idx=-1, scale_grad_by_freq=false, without_padding=false} : "
      "f32[5,4]";
  static constexpr int8_t arity = 3;
  static constexpr uint32_t traits = Trait::pure | Trait::overwrites;
  static SaveSet saves_for(const Call&, uint64_t) { return {uint64_t{2}, 0}; }
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

using EmbeddingOps = OpList<Embedding, EmbeddingBackward, EmbeddingAdd>;

}  // namespace ops

/// weight[indices]: indices int64 or int32 of any shape, weight [rows, width], result indices.shape + [width]. The row
/// padding_idx gets no gradient. Errors: dtype_mismatch, bad_dim, index_out_of_range, bad_argument (padding_idx).
Tensor embedding(Operand weight, const Tensor& indices, std::optional<int64_t> padding_idx = {},
                 bool scale_grad_by_freq = false);
/// int64 of shape index.shape + [num_classes], with 1 at the index; num_classes -1: one more than the largest entry
/// (reads the data).
Tensor one_hot(Operand index, int64_t num_classes = -1);

}  // namespace retrograd
#pragma GCC visibility pop
