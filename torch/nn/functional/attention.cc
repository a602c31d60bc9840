// See torch/nn/functional/attention.h.
#include "torch/nn/functional/attention.h"

#include "nn/attention.h"

namespace torch::nn::functional {

std::tuple<Tensor, Tensor> multi_head_attention_forward(Operand query, const Tensor& key, const Tensor& value,
                                                        const MultiheadAttentionForwardFuncOptions& o) {
  auto [output, weights] = retrograd::nn::functional::multi_head_attention_forward(
      query, key, value,
      {.embed_dim_to_check = o.embed_dim_to_check(),
       .num_heads = o.num_heads(),
       .in_proj_weight = o.in_proj_weight(),
       .in_proj_bias = o.in_proj_bias(),
       .bias_k = o.bias_k(),
       .bias_v = o.bias_v(),
       .add_zero_attn = o.add_zero_attn(),
       .dropout_p = o.dropout_p(),
       .out_proj_weight = o.out_proj_weight(),
       .out_proj_bias = o.out_proj_bias(),
       .training = o.training(),
       .key_padding_mask = o.key_padding_mask(),
       .need_weights = o.need_weights(),
       .attn_mask = o.attn_mask(),
       .use_separate_proj_weight = o.use_separate_proj_weight(),
       .q_proj_weight = o.q_proj_weight(),
       .k_proj_weight = o.k_proj_weight(),
       .v_proj_weight = o.v_proj_weight(),
       .static_k = o.static_k(),
       .static_v = o.static_v(),
       .average_attn_weights = o.average_attn_weights()});
  return {output, weights};
}

}  // namespace torch::nn::functional
