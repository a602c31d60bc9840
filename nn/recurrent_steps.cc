// See nn/recurrent_steps.h.
#include "nn/recurrent_steps.h"

#include "ops/arithmetic.h"
#include "ops/creation.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/recurrent.h"
#include "ops/views.h"

namespace retrograd::inline v0::nn::detail {

Tensor input_sums(const Tensor& x, const Recurrent::Weights& w) {
  return linear(x, w.weight_ih, w.bias_ih.defined() ? w.bias_ih + w.bias_hh : Tensor());
}

Tensor rnn_steps(const Tensor& x, const Recurrent::Weights& w, const Tensor& before, const Tensor& lengths,
                 bool is_relu, bool reverse) {
  return ops::rnn(input_sums(x, w), w.weight_hh, before, lengths, is_relu, reverse);
}

Tensors lstm_steps(const Tensor& x, const Recurrent::Weights& w, const Tensors& before, const Tensor& lengths,
                   bool reverse) {
  const ops::SequenceStates all =
      ops::lstm(input_sums(x, w), w.weight_hh, {before[0], before[1]}, lengths, reverse);
  return {all.h, all.c};
}

// The biases of n stay apart, since r multiplies one of them only.
Tensor gru_steps(const Tensor& x, const Recurrent::Weights& w, const Tensor& before, const Tensor& lengths,
                 bool reverse) {
  Tensor input_bias, bias_n;
  if (w.bias_ih.defined()) {
    const Dim hidden = w.weight_hh.sym_size(1);
    bias_n = narrow(w.bias_hh, 0, 2 * hidden, hidden);
    input_bias = w.bias_ih + cat({narrow(w.bias_hh, 0, 0, 2 * hidden), zeros_like(bias_n)});
  }
  return ops::gru(linear(x, w.weight_ih, input_bias), w.weight_hh, bias_n, before, lengths, reverse);
}

}  // namespace retrograd::nn::detail
