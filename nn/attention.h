// Multi-head attention: attentions side by side, each over its part of the width (Vaswani et al. 2017).
//
//   nn::MultiheadAttention attention{this, "attention", 512, 8, {.batch_first = true}};
//   const auto [output, weights] = attention(x, x, x);                    // x (batch, length, 512)
//   const Tensor same = attention(x, x, x, {}, false).output;             // faster: the weights are not kept
//
// Parameters, their names, shapes and initial values are PyTorch's: in_proj_weight [3 E, E], rows for queries, keys and
// values in this order, or q_proj_weight [E, E], k_proj_weight [E, kdim], v_proj_weight [E, vdim] where the widths
// differ; in_proj_bias [3 E]; bias_k and bias_v [1, 1, E]; out_proj, a Linear. Inputs that are one tensor are projected
// in one product.
//
// Sizes: N the batch, L queries, S keys, E embed_dim, H heads, each E / H wide.
//   query   (L, N, E), with batch_first (N, L, E), or without a batch (L, E)
//   key     the same with S and kdim; value: with S and vdim
//   output  as query; weights (N, L, S), the means over heads, or (N, H, L, S); (L, S) and (H, L, S) without a batch
// Masks, as in PyTorch: bool is true where a key is left out, the opposite of scaled_dot_product_attention; a mask of a
// floating dtype is added to the scores. A query with all keys left out gets zeros, whether or not weights are asked
// for. (PyTorch gives nan when they are.)
#pragma once

#include <optional>

#include "nn/linear.h"
#include "ops/attention.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

namespace functional {

struct MultiheadAttentionForwardFuncOptions {
  int64_t embed_dim_to_check = 0, num_heads = 1;
  Tensor in_proj_weight, in_proj_bias = {};
  Tensor bias_k = {}, bias_v = {};  // a further key and value
  bool add_zero_attn = false;       // a further key and value of zeros
  double dropout_p = 0;             // of weights, when training
  Tensor out_proj_weight, out_proj_bias = {};
  bool training = true;
  Tensor key_padding_mask = {};  // (N, S)
  bool need_weights = true;
  Tensor attn_mask = {};                  // (L, S), or (N H, L, S)
  bool use_separate_proj_weight = false;  // instead of in_proj_weight
  Tensor q_proj_weight = {}, k_proj_weight = {}, v_proj_weight = {};
  Tensor static_k = {}, static_v = {};  // (N H, S, E / H): used in place of the projected ones
  bool average_attn_weights = true;
  bool is_causal = false;  // see MultiheadAttention::forward
  bool batch_first = false;
};

/// See the head of nn/attention.h. The weights are undefined unless needed. Errors: bad_dim, shape_mismatch,
/// dtype_mismatch; bad_argument for a number of heads that does not divide E.
AttentionOutput multi_head_attention_forward(Operand query, const Tensor& key, const Tensor& value,
                                             const MultiheadAttentionForwardFuncOptions& options);

}  // namespace functional

struct MultiheadAttentionOptions {
  double dropout = 0;  // of weights, in training
  bool bias = true;
  bool add_bias_kv = false;                     // a learned key and value, after the others
  bool add_zero_attn = false;                   // a key and value of zeros, after the others
  std::optional<int64_t> kdim = {}, vdim = {};  // widths of key and value; embed_dim unless given
  bool batch_first = false;
};

class MultiheadAttention : public Layer<MultiheadAttention> {
 public:
  static constexpr std::string_view type_name = "MultiheadAttention";
  using Output = AttentionOutput;

  /// Error(bad_argument) unless num_heads divides embed_dim, sizes are at least 1 and 0 <= dropout <= 1.
  MultiheadAttention(Module* parent, std::string name, int64_t embed_dim, int64_t num_heads,
                     MultiheadAttentionOptions options = {},
                     SourceLocation where = SourceLocation::current());

  /// key_padding_mask (N, S), or (S); attn_mask (L, S), or (N H, L, S); weights are undefined unless needed. is_causal
  /// alone leaves out keys after the query's position. With attn_mask it states that this is that mask, which is then
  /// not read where the fused attention serves. Errors: those of functional::multi_head_attention_forward.
  Output forward(Operand query, const Tensor& key, const Tensor& value, const Tensor& key_padding_mask = {},
                 bool need_weights = true, const Tensor& attn_mask = {}, bool average_attn_weights = true,
                 bool is_causal = false) const;
  Output operator()(Operand query, const Tensor& key, const Tensor& value,
                    const Tensor& key_padding_mask = {}, bool need_weights = true,
                    const Tensor& attn_mask = {}, bool average_attn_weights = true,
                    bool is_causal = false) const;
  std::tuple<int64_t, int64_t, MultiheadAttentionOptions> arguments() const;

  const int64_t embed_dim, num_heads;
  const MultiheadAttentionOptions options;
  Parameter in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, bias_k, bias_v;
  Linear out_proj;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
