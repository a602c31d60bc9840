// Bags of rows of a table: their sum, mean or elementwise maximum, without the rows in between.
//
// An index (n) with offsets (bags) has a bag from each offset to the next; an index (bags, length) has its rows. Sums
// and means are one op,
//   y[b] = sum over entries i of bag b of scale[i] s[i] weight[index[i]],
// which also gives each entry's bag and scale: 1, or 1 over the number of entries for a mean, and 0 for what counts in
// no bag: padding, and what lies behind the last offset. Its rule is made of these two; s are the weights of the
// entries, if there are any (per_sample_weights). The maximum gives the row that was taken for each element; that of an
// empty bag is -1, and the result 0.
#pragma once

#include <optional>

#include "ops/embedding.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct EmbeddingBagAttrs {
  EmbeddingAttrs embedding;
  bool include_last_offset = false;  // the last offset is an end, and begins no bag
  bool is_mean = false;
  void visit(AttrVisitor& v) {
    embedding.visit(v);
    v.field("include_last_offset", include_last_offset);
    v.field("is_mean", is_mean);
  }
};

/// (index, weight [rows, width], offsets or none, per_sample_weights or none) -> (y [bags, width], bag of each entry,
/// scale of each entry in float32 for 16 bits).
struct EmbeddingBag {
  using Attrs = EmbeddingBagAttrs;
  static constexpr std::string_view name = "embedding_bag", doc = "sums or means of rows of a table";
  static constexpr std::string_view operands = "index, weight, offsets, per_sample_weights";
  static constexpr std::string_view example =
      "i64[6], f32[5,4], i64[2], f32[6] {padding_idx=-1, scale_grad_by_freq=false, without_padding=false, "
      "include_last_offset=false, is_mean=false} : f32[2,4], i64[6], f32[6]";
  static constexpr int8_t arity = 4, outputs = 3;
  static constexpr uint8_t optional = 12;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static SaveSet saves_for(const Call& call, uint64_t wants);
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

/// (index, weight, offsets or none) -> (y [bags, width], row of each element or -1).
struct EmbeddingBagMax {
  using Attrs = EmbeddingBagAttrs;
  static constexpr std::string_view name = "embedding_bag_max", doc = "elementwise maxima of rows of a table";
  static constexpr std::string_view operands = "index, weight, offsets";
  static constexpr std::string_view example =
      "i64[6], f32[5,4], i64[2] {padding_idx=-1, scale_grad_by_freq=false, without_padding=false, "
      "include_last_offset=false, is_mean=false} : f32[2,4], i64[2,4]";
  static constexpr int8_t arity = 3, outputs = 2;
  static constexpr uint8_t optional = 4;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static SaveSet saves_for(const Call&, uint64_t) { return {0, uint64_t{2}}; }  // the rows
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

using EmbeddingBagOps = OpList<EmbeddingBag, EmbeddingBagMax>;

}  // namespace ops

/// Sums, means or maxima ("sum", "mean", "max") of bags of rows of `weight` [rows, width]: floating -> [bags, width].
/// Index int64 or int32: (bags, length) without offsets, or (n) with the offsets at which bags begin, the first 0 and
/// none smaller than the one before; include_last_offset: the last one is the end of the last bag. per_sample_weights,
/// of the index's shape, multiply the rows of a sum. Entries equal to padding_idx do not count and get no gradient. An
/// empty bag gives 0; among equal maxima the first counts. scale_grad_by_freq: as in embedding, not with "max". Errors:
/// bad_dim, shape_mismatch, dtype_mismatch, index_out_of_range, bad_argument.
Tensor embedding_bag(Operand index, const Tensor& weight, const Tensor& offsets = {},
                     bool scale_grad_by_freq = false, std::string_view mode = "mean",
                     const Tensor& per_sample_weights = {}, bool include_last_offset = false,
                     std::optional<int64_t> padding_idx = {});

}  // namespace retrograd
#pragma GCC visibility pop
