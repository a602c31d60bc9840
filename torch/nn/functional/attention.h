// Multi-head attention as a function.
#pragma once

#include <tuple>

#include "torch/nn/names.h"
#include "torch/nn/options/attention.h"

#pragma GCC visibility push(default)
namespace torch::nn::functional {

/// (output, weights); the weights are undefined unless they are asked for.
std::tuple<Tensor, Tensor> multi_head_attention_forward(Operand query, const Tensor& key, const Tensor& value,
                                                        const MultiheadAttentionForwardFuncOptions& options);

}  // namespace torch::nn::functional
#pragma GCC visibility pop
