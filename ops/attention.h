// Scaled dot product attention: softmax(query key' * scale + mask) value.
//
// The common case (no mask or the causal one) is one op, Attention, that never holds the matrix of weights. It gives
// the result and, for each query, the logarithm of its sum of weights, from which AttentionBackward recomputes the
// weights, row block by row block (Dao et al., FlashAttention). Everything else is made of matmul and softmax, and so
// is the derivative of AttentionBackward.
//
// 16-bit formats are computed in float32. Kernels that use tensor cores round the weights, and in the backward pass
// their gradients, to 16 bits, as factors of the next product.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct AttentionAttrs {
  bool is_causal = false;
  Scalar scale;
  /// For at least two batch dims: the result and its gradient are (..., L, H, V) instead of (..., H, L, V), the order
  /// of heads in the input of a projection; so are the gradients that AttentionBackward gives. Query, key, value and
  /// log sum exp keep their order.
  bool interleaved = false;
  void visit(AttrVisitor& v) {
    v.field("is_causal", is_causal);
    v.field("scale", scale);
    v.field("interleaved", interleaved);
  }
};

/// (..., L, E), (..., S, E), (..., S, V) of a floating dtype of at least 16 bits -> (..., L, V) and log sum exp of the
/// scores (..., L), in float32 for 16 bits. Interleaved on the CPU only, where the public function requests it.
struct Attention {
  using Attrs = AttentionAttrs;
  static constexpr std::string_view name = "attention",
                                    doc =
                                        "softmax(query key' * scale) value, with the log sum exp of each row";
  static constexpr auto cast_policy = CastPolicy::lower_precision;
  static constexpr std::string_view operands = "query, key, value";
  static constexpr std::string_view example =
      "f32[2,3,4], f32[2,5,4], f32[2,5,6] {is_causal=false, scale=0.5, interleaved=false} : f32[2,3,6], "
      "f32[2,3]";
  static constexpr int8_t arity = 3, outputs = 2;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static constexpr auto saves = Saves::both;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_leading;
};

/// Operands query, key, value, result, log sum exp, gradient of the result; gives the gradients of query, key
/// and value.
struct AttentionBackward {
  using Attrs = AttentionAttrs;
  static constexpr std::string_view name = "attention_backward", doc = "gradients of attention";
  static constexpr std::string_view operands = "query, key, value, out, lse, g";
  static constexpr std::string_view example =
      "f32[2,3,4], f32[2,5,4], f32[2,5,6], f32[2,3,6], f32[2,3], f32[2,3,6] {is_causal=false, scale=0.5, "
      "interleaved=false} : "
      "f32[2,3,4], f32[2,5,4], f32[2,5,6]";
  static constexpr int8_t arity = 6, outputs = 3;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static constexpr auto saves = Saves::operands;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_leading;
};

/// AttentionBackward, interleaved, for query, key and value of one shape (..., H, L, E), which come from one
/// projection: its gradient (..., L, 3, H, E). In a compiled step it replaces three gradients and a copy that joins
/// them.
struct AttentionBackwardJoined {
  using Attrs = AttentionAttrs;
  static constexpr std::string_view name = "attention_backward_joined",
                                    doc = "gradients of attention, next to each other";
  static constexpr std::string_view operands = AttentionBackward::operands;
  static constexpr std::string_view example =
      "f32[2,3,5,4], f32[2,3,5,4], f32[2,3,5,4], f32[2,5,3,4], f32[2,3,5], f32[2,5,3,4] {is_causal=false, "
      "scale=0.5, interleaved=true} : f32[2,5,3,3,4]";
  static constexpr int8_t arity = 6;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static constexpr std::string_view no_derivative =
      "only passes make it, and a graph is not differentiated after passes";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static constexpr auto batch = batch_leading;
};

using AttentionOps = OpList<Attention, AttentionBackward, AttentionBackwardJoined>;

}  // namespace ops

struct AttentionOutput {
  Tensor output, weights;
};

namespace ops {
/// scaled_dot_product_attention made of matmul and softmax, for checked operands of one dtype and a mask or none; it
/// also gives the weights (..., L, S), after dropout.
AttentionOutput attention_and_weights(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const Tensor& attn_mask, double dropout_p, Scalar scale);
}  // namespace ops

/// query (..., L, E), key (..., S, E), value (..., S, V) -> (..., L, V); dims before the last two are broadcast.
/// attn_mask is broadcast to (..., L, S): bool (false: masked out), or of query's dtype and added to the scores.
/// dropout_p is the probability that a weight is dropped (ops/dropout.h), whichever mode a module is in. is_causal
/// masks keys after the query's position. scale is 1 / sqrt(E) by default. A query with all keys masked gives zeros.
/// Without a mask, a result with at least two batch dims has the strides of (..., L, H, V) on the CPU, as in PyTorch.
/// Errors: bad_argument (mask and is_causal, dropout_p), bad_dim, shape_mismatch, dtype_mismatch.
Tensor scaled_dot_product_attention(Operand query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask = {}, double dropout_p = 0,
                                    bool is_causal = false, std::optional<Scalar> scale = {});

}  // namespace retrograd
#pragma GCC visibility pop
