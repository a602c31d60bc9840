// See torch/nn/modules/rnn.h.
#include "torch/nn/modules/rnn.h"

namespace torch::nn {

using enumtype::text_of;
using retrograd::SourceLocation;

namespace {

// The layer's options that all three have.
template <class To, class From>
To common(const From& o) {
  To to;
  to.num_layers = o.num_layers();
  to.bias = o.bias();
  to.batch_first = o.batch_first();
  to.dropout = o.dropout();
  to.bidirectional = o.bidirectional();
  return to;
}

rn::RNNOptions layer_options(const RNNOptions& o) {
  auto to = common<rn::RNNOptions>(o);
  to.nonlinearity = text_of(o.nonlinearity());
  return to;
}

rn::LSTMOptions layer_options(const LSTMOptions& o) {
  auto to = common<rn::LSTMOptions>(o);
  to.proj_size = o.proj_size();
  return to;
}

rn::LSTM::State state_of(const std::optional<detail::HiddenAndCell>& hx) {
  return hx ? rn::LSTM::State{std::get<0>(*hx), std::get<1>(*hx)} : rn::LSTM::State{};
}

}  // namespace

RNNImpl::RNNImpl(const RNNOptions& o) : Wrapped(o, o.input_size(), o.hidden_size(), layer_options(o)) {}
GRUImpl::GRUImpl(const GRUOptions& o)
    : Wrapped(o, o.input_size(), o.hidden_size(), common<rn::GRUOptions>(o)) {}
LSTMImpl::LSTMImpl(const LSTMOptions& o) : Wrapped(o, o.input_size(), o.hidden_size(), layer_options(o)) {}
RNNCellImpl::RNNCellImpl(const RNNCellOptions& o)
    : Wrapped(o, o.input_size(), o.hidden_size(),
              rn::RNNCellOptions{.bias = o.bias(), .nonlinearity = text_of(o.nonlinearity())}) {}
GRUCellImpl::GRUCellImpl(const GRUCellOptions& o)
    : Wrapped(o, o.input_size(), o.hidden_size(), rn::GRUCellOptions{.bias = o.bias()}) {}
LSTMCellImpl::LSTMCellImpl(const LSTMCellOptions& o)
    : Wrapped(o, o.input_size(), o.hidden_size(), rn::LSTMCellOptions{.bias = o.bias()}) {}

std::tuple<Tensor, Tensor> RNNImpl::forward(Operand input, const Tensor& hx) const {
  auto [output, h_n] = rn::RNN::forward(input, hx);
  return {output, h_n};
}

std::tuple<detail::PackedSequence, Tensor> RNNImpl::forward_with_packed_input(
    const detail::PackedSequence& input, const Tensor& hx, SourceLocation where) const {
  auto [output, h_n] = rn::RNN::forward_with_packed_input(input, hx, where);
  return {output, h_n};
}

std::tuple<Tensor, Tensor> GRUImpl::forward(Operand input, const Tensor& hx) const {
  auto [output, h_n] = rn::GRU::forward(input, hx);
  return {output, h_n};
}

std::tuple<detail::PackedSequence, Tensor> GRUImpl::forward_with_packed_input(
    const detail::PackedSequence& input, const Tensor& hx, SourceLocation where) const {
  auto [output, h_n] = rn::GRU::forward_with_packed_input(input, hx, where);
  return {output, h_n};
}

std::tuple<Tensor, detail::HiddenAndCell> LSTMImpl::forward(
    Operand input, const std::optional<detail::HiddenAndCell>& hx) const {
  auto [output, state] = rn::LSTM::forward(input, state_of(hx));
  return {output, {state.h, state.c}};
}

std::tuple<detail::PackedSequence, detail::HiddenAndCell> LSTMImpl::forward_with_packed_input(
    const detail::PackedSequence& input, const std::optional<detail::HiddenAndCell>& hx,
    SourceLocation where) const {
  auto [output, state] = rn::LSTM::forward_with_packed_input(input, state_of(hx), where);
  return {output, {state.h, state.c}};
}

std::tuple<Tensor, Tensor> LSTMCellImpl::forward(Operand input,
                                                 const std::optional<detail::HiddenAndCell>& hx) const {
  const rn::LSTM::State state = rn::LSTMCell::forward(input, state_of(hx));
  return {state.h, state.c};
}

}  // namespace torch::nn
