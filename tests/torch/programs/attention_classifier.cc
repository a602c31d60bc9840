// A classifier of sequences of different lengths: attention with masks, a Transformer layer whose parts are initialised
// one by one, and mean pooling over what is there.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "weights.h"

using namespace torch::indexing;
namespace nn = torch::nn;
namespace F = torch::nn::functional;

struct ClassifierImpl : nn::Module {
  ClassifierImpl(int64_t features, int64_t width, int64_t heads, int64_t classes)
      : input(nn::LinearOptions(features, width)),
        layer(nn::TransformerEncoderLayerOptions(width, heads).dim_feedforward(2 * width).dropout(0)),
        attention(nn::MultiheadAttentionOptions(width, heads).dropout(0.0).bias(true)),
        norm(nn::LayerNormOptions({width})),
        head(nn::Sequential(nn::Linear(width, width), nn::Tanh(), nn::Dropout(0.0),
                            nn::Linear(width, classes))) {
    input = register_module("input", input);
    layer = register_module("layer", layer);
    attention = register_module("attention", attention);
    norm = register_module("norm", norm);
    head = register_module("head", head);
    query = register_parameter("query", torch::zeros({1, 1, width}));
  }

  // x (length, batch, features), padding (batch, length): true where there is nothing.
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& x, const torch::Tensor& padding) {
    auto y = layer(torch::relu(input(x)), /*src_mask=*/torch::Tensor(), /*src_key_padding_mask=*/padding);
    const auto question = query.expand({1, x.size(1), -1});
    auto [summary, weights] = attention(question, y, y, padding, /*need_weights=*/true);
    const auto present = padding.logical_not().t().unsqueeze(-1).to(y.scalar_type());
    const auto average = (y * present).sum(0) / present.sum(0);
    return {head->forward(norm(summary.squeeze(0) + average)), weights.squeeze(1)};
  }

  nn::Linear input;
  nn::TransformerEncoderLayer layer;
  nn::MultiheadAttention attention;
  nn::LayerNorm norm;
  nn::Sequential head;
  torch::Tensor query;
};
TORCH_MODULE(Classifier);

// Norms begin as the identity, biases with a small number.
static void initialize(nn::Module& module) {
  torch::NoGradGuard no_grad;
  for (auto& item : module.named_parameters()) {
    const std::string& name = item.key();
    const bool is_bias = name.find("bias") != std::string::npos;
    if (name.find("norm") != std::string::npos)
      nn::init::constant_(item.value(), is_bias ? 0 : 1);
    else if (is_bias)
      item.value().fill_(0.01);
  }
}

struct Sequences {
  torch::Tensor x, padding, classes;
};

static Sequences sequences(int64_t batch, double phase) {
  const int64_t length = 7;
  const auto x = waves({length, batch, 3}, 0.61, phase);
  const auto lengths = torch::arange(batch).remainder(4).add(3);
  const auto padding = torch::arange(length).unsqueeze(0).ge(lengths.unsqueeze(1));
  const auto sums = x.masked_fill(padding.t().unsqueeze(-1), 0).sum({0, 2});
  return {x, padding, (sums > 0.3).to(torch::kLong) + (sums > -0.3).to(torch::kLong)};
}

int main() {
  Classifier model(3, 8, 2, 3);
  fill_parameters(*model, 0.35);
  initialize(*model);
  {
    torch::NoGradGuard no_grad;
    model->layer->linear1->weight.mul_(0.5);
    model->layer->linear2->bias.add_(0.02);
    model->layer->self_attn->in_proj_weight.mul_(0.8);
    model->layer->norm1->weight.fill_(0.9);
    model->attention->out_proj->weight.mul_(1.1);
  }
  int64_t count = 0;
  for (const auto& pair : model->named_parameters()) count += pair.value().numel();
  std::printf("%ld numbers, %zu modules\n", long(count), model->modules(/*include_self=*/false).size());

  torch::optim::SGD optimizer(model->parameters(),
                              torch::optim::SGDOptions(0.05).momentum(0.9).nesterov(true));
  const auto weight = torch::tensor({1.0, 0.8, 1.2}, torch::kFloat);
  for (int step = 1; step <= 30; ++step) {
    const auto data = sequences(12, 0.1 * (step % 5));
    optimizer.zero_grad();
    const auto [logits, weights] = model(data.x, data.padding);
    const auto loss = F::cross_entropy(logits, data.classes,
                                       F::CrossEntropyFuncOptions().weight(weight).label_smoothing(0.05));
    loss.backward();
    optimizer.step();
    if (step % 6 == 0)
      std::printf("step %d loss %.5f right %ld of 12\n", step, loss.item<float>(),
                  long(logits.argmax(1).eq(data.classes).sum().item<int64_t>()));
  }

  model->eval();
  torch::NoGradGuard no_grad;
  const auto data = sequences(4, 0.7);
  const auto [logits, weights] = model->forward(data.x, data.padding);
  TORCH_CHECK(weights.index({data.padding}).abs().sum().item<float>() == 0, "padding has no weight");
  TORCH_CHECK(torch::allclose(weights.sum(-1), torch::ones({4})), "weights add up to 1");
  const auto [best, place] = weights.max(/*dim=*/1);
  for (int64_t i = 0; i < 4; ++i)
    std::printf("sequence %ld attends to %ld with %.4f\n", long(i), long(place[i].item<int64_t>()),
                best[i].item<float>());
  const auto entropy = -(torch::softmax(logits, -1) * torch::log_softmax(logits, -1)).sum(-1);
  std::printf("entropy %.4f, largest logit %.4f\n", entropy.mean().item<float>(),
              logits.index({"...", Slice(None, 2)}).max().item<float>());
  // Attention by hand.
  const auto q = waves({2, 4, 8}, 0.2), causal = torch::ones({4, 4}, torch::kBool).tril();
  const auto by_hand =
      torch::softmax((q.matmul(q.transpose(-2, -1)) / std::sqrt(8.0)).masked_fill(causal == false, -INFINITY),
                     -1)
          .matmul(q);
  const auto fused = at::scaled_dot_product_attention(q, q, q, causal);
  std::printf("difference %.6f, norm %.4f\n", (by_hand - fused).abs().max().item<float>(),
              fused.norm().item<float>());
}
