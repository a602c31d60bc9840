// Recurrent layers and cells of torch::nn, with packed sequences.
#include "tests/torch/digest.h"

namespace nn = torch::nn;
namespace rnn = torch::nn::utils::rnn;
using digest::expect, digest::wave;

TEST_CASE("Recurrent layers") {
  const torch::Tensor x = wave({4, 2, 3});
  nn::LSTM lstm(nn::LSTMOptions(3, 5).num_layers(2).bidirectional(true));
  digest::fill(*lstm);
  auto [output, state] = lstm(x);
  expect(digest::of(output), 2.99375);
  expect(digest::of(std::get<0>(state)), -2.105871);
  expect(digest::of(std::get<1>(state)), 3.364535);
  output.sum().backward();
  expect(digest::of_gradients(*lstm), -41.19564);
  CHECK(lstm->options.hidden_size() == 5);
  CHECK(lstm->named_parameters().contains("weight_hh_l1_reverse"));
  auto [next, last] = lstm->forward(x, state);
  expect(digest::of(next), 2.158875);
  lstm->flatten_parameters();
  CHECK(lstm->all_weights().size() == 16);
  nn::LSTM projected(nn::LSTMOptions(3, 5).proj_size(2).batch_first(true));
  digest::fill(*projected);
  auto [h, c] = std::get<1>(projected(x, std::make_tuple(wave({1, 4, 2}), wave({1, 4, 5}))));
  expect(digest::of(h) + digest::of(c), -0.6270553);

  nn::GRU gru(3, 5);
  digest::fill(*gru);
  const auto gru_result = gru->forward(x, wave({1, 2, 5}));
  expect(digest::of(std::get<0>(gru_result)), 0.06729603);
  nn::RNN simple(nn::RNNOptions(3, 5).nonlinearity(torch::kReLU).batch_first(true));
  digest::fill(*simple);
  torch::Tensor y, h_n;
  std::tie(y, h_n) = simple(x);
  expect(digest::of(y), 1.985999);
  expect(digest::of(h_n), -5.631275);
}

TEST_CASE("Recurrent cells") {
  const torch::Tensor x = wave({2, 3});
  nn::LSTMCell lstm(3, 4);
  digest::fill(*lstm);
  auto state = lstm(x);
  state = lstm(x, state);
  expect(digest::of(std::get<0>(state)) + 2 * digest::of(std::get<1>(state)), 3.61799);
  nn::GRUCell gru(nn::GRUCellOptions(3, 4).bias(false));
  digest::fill(*gru);
  expect(digest::of(gru(x, wave({2, 4}))), -1.06552);
  nn::RNNCell simple(nn::RNNCellOptions(3, 4).nonlinearity(torch::kReLU));
  digest::fill(*simple);
  expect(digest::of(simple(x)), 3.358931);
  CHECK(simple->weight_ih.size(0) == 4);
}

TEST_CASE("Packed sequences") {
  const torch::Tensor x = wave({4, 3, 2}), lengths = torch::tensor({4, 3, 1}).to(torch::kLong);
  nn::GRU gru(2, 3);
  digest::fill(*gru);
  const auto packed = rnn::pack_padded_sequence(x, lengths);
  auto [output, h_n] = gru->forward_with_packed_input(packed);
  auto [padded, same] = rnn::pad_packed_sequence(output);
  CHECK(torch::equal(same, lengths));
  expect(digest::of(padded), 0.4740937);
  expect(digest::of(h_n), 0.1096575);
  nn::LSTM lstm(2, 3);
  digest::fill(*lstm);
  auto [lstm_output, state] = lstm->forward_with_packed_input(rnn::pack_padded_sequence(x, lengths));
  expect(digest::of(std::get<0>(state)), 0.5123375);
  CHECK(rnn::pad_sequence({torch::ones({2}), torch::ones({3})}, /*batch_first=*/true).sizes() ==
        std::vector<int64_t>({2, 3}));
}
