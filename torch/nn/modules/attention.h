// MultiheadAttention. Results are libtorch's: (output, weights), the weights undefined unless they are asked for.
#pragma once

#include <tuple>

#include "nn/attention.h"
#include "torch/nn/names.h"
#include "torch/nn/options/attention.h"
#include "torch/nn/wrapped.h"

#pragma GCC visibility push(default)
namespace torch::nn {

RG_TORCH_IMPL(MultiheadAttention, MultiheadAttention, MultiheadAttentionOptions,
              std::tuple<Tensor, Tensor> forward(Operand query, const Tensor& key, const Tensor& value,
                                                 const Tensor& key_padding_mask = {},
                                                 bool need_weights = true, const Tensor& attn_mask = {},
                                                 bool average_attn_weights = true) const;);
TORCH_MODULE(MultiheadAttention);

}  // namespace torch::nn
#pragma GCC visibility pop
