// Options of MultiheadAttention, and of its function.
#pragma once

#include "engine/tensor.h"
#include "torch/arg.h"

#pragma GCC visibility push(default)
namespace torch::nn {

struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads), kdim_(embed_dim), vdim_(embed_dim) {}
  TORCH_ARG(int64_t, embed_dim);
  TORCH_ARG(int64_t, num_heads);
  TORCH_ARG(double, dropout) = 0;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(bool, add_bias_kv) = false;
  TORCH_ARG(bool, add_zero_attn) = false;
  TORCH_ARG(int64_t, kdim);
  TORCH_ARG(int64_t, vdim);
};

namespace functional {

struct MultiheadAttentionForwardFuncOptions {
  MultiheadAttentionForwardFuncOptions(int64_t embed_dim_to_check, int64_t num_heads,
                                       retrograd::Tensor in_proj_weight, retrograd::Tensor in_proj_bias,
                                       retrograd::Tensor bias_k, retrograd::Tensor bias_v, bool add_zero_attn,
                                       double dropout_p, retrograd::Tensor out_proj_weight,
                                       retrograd::Tensor out_proj_bias)
      : embed_dim_to_check_(embed_dim_to_check),
        num_heads_(num_heads),
        in_proj_weight_(std::move(in_proj_weight)),
        in_proj_bias_(std::move(in_proj_bias)),
        bias_k_(std::move(bias_k)),
        bias_v_(std::move(bias_v)),
        add_zero_attn_(add_zero_attn),
        dropout_p_(dropout_p),
        out_proj_weight_(std::move(out_proj_weight)),
        out_proj_bias_(std::move(out_proj_bias)) {}
  TORCH_ARG(int64_t, embed_dim_to_check);
  TORCH_ARG(int64_t, num_heads);
  TORCH_ARG(retrograd::Tensor, in_proj_weight);
  TORCH_ARG(retrograd::Tensor, in_proj_bias);
  TORCH_ARG(retrograd::Tensor, bias_k);
  TORCH_ARG(retrograd::Tensor, bias_v);
  TORCH_ARG(bool, add_zero_attn);
  TORCH_ARG(double, dropout_p);
  TORCH_ARG(retrograd::Tensor, out_proj_weight);
  TORCH_ARG(retrograd::Tensor, out_proj_bias);
  TORCH_ARG(bool, training) = true;
  TORCH_ARG(retrograd::Tensor, key_padding_mask);
  TORCH_ARG(bool, need_weights) = true;
  TORCH_ARG(retrograd::Tensor, attn_mask);
  TORCH_ARG(bool, use_separate_proj_weight) = false;
  TORCH_ARG(retrograd::Tensor, q_proj_weight);
  TORCH_ARG(retrograd::Tensor, k_proj_weight);
  TORCH_ARG(retrograd::Tensor, v_proj_weight);
  TORCH_ARG(retrograd::Tensor, static_k);
  TORCH_ARG(retrograd::Tensor, static_v);
  TORCH_ARG(bool, average_attn_weights) = true;
};

}  // namespace functional

}  // namespace torch::nn
#pragma GCC visibility pop
