// See torch/nn/modules/attention.h.
#include "torch/nn/modules/attention.h"

namespace torch::nn {

MultiheadAttentionImpl::MultiheadAttentionImpl(const MultiheadAttentionOptions& o)
    : Wrapped(o, o.embed_dim(), o.num_heads(),
              rn::MultiheadAttentionOptions{.dropout = o.dropout(),
                                            .bias = o.bias(),
                                            .add_bias_kv = o.add_bias_kv(),
                                            .add_zero_attn = o.add_zero_attn(),
                                            .kdim = o.kdim(),
                                            .vdim = o.vdim()}) {}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(Operand query, const Tensor& key,
                                                           const Tensor& value,
                                                           const Tensor& key_padding_mask, bool need_weights,
                                                           const Tensor& attn_mask,
                                                           bool average_attn_weights) const {
  auto [output, weights] = rn::MultiheadAttention::forward(query, key, value, key_padding_mask, need_weights,
                                                           attn_mask, average_attn_weights);
  return {output, weights};
}

}  // namespace torch::nn
