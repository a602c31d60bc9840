// Recurrent layers and cells. Results are libtorch's tuples: (output, h_n) of RNN and GRU, (output, (h_n, c_n)) of
// LSTM.
#pragma once

#include <optional>
#include <tuple>

#include "nn/recurrent.h"
#include "nn/recurrent_cells.h"
#include "torch/nn/names.h"
#include "torch/nn/options/rnn.h"
#include "torch/nn/wrapped.h"

#pragma GCC visibility push(default)
namespace torch::nn {

namespace detail {

using rn::utils::rnn::PackedSequence;
/// h and c of an LSTM.
using HiddenAndCell = std::tuple<Tensor, Tensor>;

}  // namespace detail

RG_TORCH_IMPL(RNN, RNN, RNNOptions,
              std::tuple<Tensor, Tensor> forward(Operand input, const Tensor& hx = {}) const;
              std::tuple<detail::PackedSequence, Tensor> forward_with_packed_input(
                  const detail::PackedSequence& input, const Tensor& hx = {},
                  retrograd::SourceLocation where = retrograd::SourceLocation::current()) const;);
RG_TORCH_IMPL(GRU, GRU, GRUOptions,
              std::tuple<Tensor, Tensor> forward(Operand input, const Tensor& hx = {}) const;
              std::tuple<detail::PackedSequence, Tensor> forward_with_packed_input(
                  const detail::PackedSequence& input, const Tensor& hx = {},
                  retrograd::SourceLocation where = retrograd::SourceLocation::current()) const;);
RG_TORCH_IMPL(LSTM, LSTM, LSTMOptions,
              std::tuple<Tensor, detail::HiddenAndCell> forward(
                  Operand input, const std::optional<detail::HiddenAndCell>& hx_opt = {}) const;
              std::tuple<detail::PackedSequence, detail::HiddenAndCell> forward_with_packed_input(
                  const detail::PackedSequence& input,
                  const std::optional<detail::HiddenAndCell>& hx_opt = {},
                  retrograd::SourceLocation where = retrograd::SourceLocation::current()) const;);
TORCH_MODULE(RNN);
TORCH_MODULE(GRU);
TORCH_MODULE(LSTM);

RG_TORCH_LAYER(RNNCell);
RG_TORCH_LAYER(GRUCell);
RG_TORCH_IMPL(LSTMCell, LSTMCell, LSTMCellOptions,
              std::tuple<Tensor, Tensor> forward(Operand input,
                                                 const std::optional<detail::HiddenAndCell>& hx_opt = {})
                  const;);
TORCH_MODULE(LSTMCell);

}  // namespace torch::nn
#pragma GCC visibility pop
