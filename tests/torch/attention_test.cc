// MultiheadAttention and the Transformer of torch::nn.
#include "tests/torch/digest.h"

namespace nn = torch::nn;
using digest::expect, digest::wave;

TEST_CASE("MultiheadAttention") {
  nn::MultiheadAttention attention(nn::MultiheadAttentionOptions(6, 2).bias(true));
  digest::fill(*attention);
  const torch::Tensor q = wave({3, 2, 6}), k = wave({4, 2, 6}, 0.3), v = wave({4, 2, 6}, 0.4);
  auto [output, weights] = attention(q, k, v);
  expect(digest::of(output), -26.1433);
  expect(digest::of(weights), 1.04513);
  output.sum().backward();
  expect(digest::of_gradients(*attention), 1.921147);
  const torch::Tensor padding = torch::tensor({{0, 0, 0, 1}, {0, 1, 0, 0}}).to(torch::kBool);
  const torch::Tensor mask = wave({3, 4}, 0.5);
  auto [masked, none] =
      attention->forward(q, k, v, /*key_padding_mask=*/padding, /*need_weights=*/false, mask);
  expect(digest::of(masked), -28.98182);
  CHECK_FALSE(none.defined());
  expect(digest::of(std::get<1>(attention->forward(q, k, v, {}, true, {}, /*average_attn_weights=*/false))),
         -0.3975746);
  CHECK(attention->in_proj_weight.size(0) == 18);
  CHECK(attention->options.num_heads() == 2);
  nn::MultiheadAttention other(nn::MultiheadAttentionOptions(6, 3).kdim(4).vdim(4));
  digest::fill(*other);
  expect(digest::of(std::get<0>(other(q, wave({4, 2, 4}), wave({4, 2, 4}, 0.4)))), 2.935086);
}

TEST_CASE("Layers of a Transformer") {
  nn::TransformerEncoderLayer encoder(
      nn::TransformerEncoderLayerOptions(6, 2).dim_feedforward(8).dropout(0).activation(torch::kGELU));
  digest::fill(*encoder);
  const torch::Tensor src = wave({4, 2, 6}), tgt = wave({3, 2, 6}, 0.3);
  const torch::Tensor memory = encoder(src);
  expect(digest::of(memory), -0.7049006);
  nn::TransformerDecoderLayer decoder(nn::TransformerDecoderLayerOptions(6, 2).dim_feedforward(8).dropout(0));
  digest::fill(*decoder);
  const torch::Tensor y = decoder(tgt, memory);
  expect(digest::of(y), 1.698214);
  y.sum().backward();
  expect(digest::of_gradients(*decoder), 138.7144);
  nn::TransformerEncoderLayer tanh(nn::TransformerEncoderLayerOptions(6, 2).dropout(0).activation(
      [](const torch::Tensor& x) { return torch::tanh(x); }));
  digest::fill(*tanh);
  expect(digest::of(tanh(src)), -0.3957546);
}

TEST_CASE("Parts of a layer are written as libtorch's holders") {
  nn::TransformerEncoderLayer encoder(nn::TransformerEncoderLayerOptions(6, 2).dim_feedforward(8).dropout(0));
  CHECK(encoder->linear1->weight.sizes() == torch::IntArrayRef{8, 6});
  CHECK(encoder->linear2->bias.is_same(encoder->named_parameters()["linear2.bias"]));
  CHECK(encoder->norm1->weight.is_same(encoder->named_parameters()["norm1.weight"]));
  CHECK(encoder->self_attn->out_proj->weight.sizes() == torch::IntArrayRef{6, 6});
  encoder->linear1->weight.requires_grad_(false);
  CHECK_FALSE(encoder->named_parameters()["linear1.weight"].requires_grad());
  const torch::Tensor x = wave({2, 6});
  CHECK(torch::equal(encoder->linear1(x), encoder->linear1->forward(x)));
  nn::TransformerDecoderLayer decoder(nn::TransformerDecoderLayerOptions(6, 2).dim_feedforward(8));
  CHECK(decoder->multihead_attn->in_proj_weight.sizes() == torch::IntArrayRef{18, 6});
  CHECK(decoder->norm3->bias.sizes() == torch::IntArrayRef{6});
  nn::MultiheadAttention attention(6, 2);
  CHECK(attention->out_proj->bias.sizes() == torch::IntArrayRef{6});
}

TEST_CASE("Stacks of layers and the Transformer") {
  const torch::Tensor src = wave({4, 2, 6}), tgt = wave({3, 2, 6}, 0.3);
  nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(6, 2).dim_feedforward(8).dropout(0));
  nn::TransformerEncoder encoder(
      nn::TransformerEncoderOptions(layer, 2).norm(nn::AnyModule(nn::LayerNorm(nn::LayerNormOptions({6})))));
  digest::fill(*encoder);
  expect(digest::of(encoder(src)), -1.111182);
  CHECK(encoder->named_parameters().contains("layers.1.self_attn.in_proj_weight"));
  nn::TransformerDecoder decoder(
      nn::TransformerDecoderLayer(nn::TransformerDecoderLayerOptions(6, 2).dim_feedforward(8).dropout(0)), 2);
  digest::fill(*decoder);
  expect(digest::of(decoder(tgt, src)), 1.755577);

  nn::Transformer model(nn::TransformerOptions(6, 2, 1, 1).dim_feedforward(8).dropout(0));
  digest::fill(*model);
  const torch::Tensor mask = nn::TransformerImpl::generate_square_subsequent_mask(3);
  const torch::Tensor y = model(src, tgt, torch::Tensor(), mask);
  expect(digest::of(y), 0.6719908);
  CHECK(model->named_parameters().contains("decoder.layers.0.multihead_attn.out_proj.weight"));
  CHECK(model->options.d_model() == 6);
}

TEST_CASE("A copy of a Transformer leaves the original as it is") {
  const auto layer = nn::TransformerEncoderLayerOptions(6, 2).dim_feedforward(8);
  nn::TransformerEncoder encoder(nn::TransformerEncoderOptions(layer, 1));
  nn::Transformer model(
      nn::TransformerOptions(6, 2, 1, 1).dim_feedforward(8).custom_encoder(nn::AnyModule(encoder)));
  digest::fill(*model);
  const torch::Tensor before = nn::utils::parameters_to_vector(model->parameters()).clone();
  const auto copy = model->clone();
  CHECK(torch::equal(nn::utils::parameters_to_vector(model->parameters()), before));
  CHECK(torch::equal(nn::utils::parameters_to_vector(copy->parameters()), before));
}

TEST_CASE("Stacks of layers have a norm of their own") {
  const auto layer = nn::TransformerEncoderLayerOptions(6, 2).dim_feedforward(8);
  nn::LayerNorm norm(nn::LayerNormOptions({6}));
  nn::TransformerEncoder encoder(nn::TransformerEncoderOptions(layer, 1).norm(nn::AnyModule(norm)));
  CHECK(encoder->norm.ptr().get() != norm.ptr().get());
}
