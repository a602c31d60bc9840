// What layers and cells share: the steps of one layer in one direction, x (L, N, in) -> states of all steps (L, N, H),
// from the state `before` (N, H). Weights and their parts are described in nn/recurrent.h, lengths and reverse in
// ops/recurrent.h.
// This header is for source files.
#pragma once

#include "nn/recurrent.h"

namespace retrograd::inline v0::nn::detail {

/// x times the input weights, with both biases (L, N, gates H).
Tensor input_sums(const Tensor& x, const Recurrent::Weights& weights);

Tensor rnn_steps(const Tensor& x, const Recurrent::Weights& weights, const Tensor& before,
                 const Tensor& lengths, bool is_relu, bool reverse);
/// Without a projection; `before` and the result are h and c.
Tensors lstm_steps(const Tensor& x, const Recurrent::Weights& weights, const Tensors& before,
                   const Tensor& lengths, bool reverse);
Tensor gru_steps(const Tensor& x, const Recurrent::Weights& weights, const Tensor& before,
                 const Tensor& lengths, bool reverse);

}  // namespace retrograd::nn::detail
