// A transformer that learns to add 3 to each number and to shift the sequence: positions in a buffer, a causal mask.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <iostream>

#include "weights.h"

namespace nn = torch::nn;

const int64_t kNumbers = 11, kWidth = 16, kHeads = 2, kLength = 7;

// Sines and cosines of each place, added to x (batch, length, width).
struct PositionalEncodingImpl : nn::Module {
  PositionalEncodingImpl(int64_t width, double dropout, int64_t max_length = 32)
      : dropout(register_module("dropout", nn::Dropout(nn::DropoutOptions(dropout)))) {
    auto position = torch::arange(max_length, torch::kFloat).unsqueeze(1);
    auto div_term =
        torch::exp(torch::arange(0, width, 2, torch::kFloat) * (-std::log(10000.0) / double(width)));
    auto table = torch::zeros({max_length, width});
    table.index_put_({torch::indexing::Slice(), torch::indexing::Slice(0, torch::indexing::None, 2)},
                     torch::sin(position * div_term));
    table.index_put_({torch::indexing::Slice(), torch::indexing::Slice(1, torch::indexing::None, 2)},
                     torch::cos(position * div_term));
    encoding = register_buffer("encoding", table.unsqueeze(0));
  }
  torch::Tensor forward(torch::Tensor x) { return dropout(x + encoding.narrow(1, 0, x.size(1))); }

  nn::Dropout dropout{nullptr};
  torch::Tensor encoding;
};
TORCH_MODULE(PositionalEncoding);

struct ModelImpl : nn::Module {
  explicit ModelImpl(int64_t layers) {
    embedding = register_module("embedding", nn::Embedding(nn::EmbeddingOptions(kNumbers, kWidth)));
    positions = register_module("positions", PositionalEncoding(kWidth, 0.0));
    nn::TransformerEncoderLayerOptions options(kWidth, kHeads);
    options.dim_feedforward(32).dropout(0.0).activation(torch::kGELU);
    encoder = register_module("encoder", nn::TransformerEncoder(nn::TransformerEncoderOptions(
                                             nn::TransformerEncoderLayer(options), layers)));
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kWidth}).eps(1e-6)));
    head = register_module("head", nn::Linear(nn::LinearOptions(kWidth, kNumbers).bias(false)));
  }

  torch::Tensor forward(torch::Tensor tokens) {
    auto x = positions(embedding(tokens) * std::sqrt(double(kWidth)));
    const auto mask = nn::TransformerImpl::generate_square_subsequent_mask(tokens.size(1));
    x = encoder(x.transpose(0, 1), mask).transpose(0, 1);
    return head(norm(x));
  }

  nn::Embedding embedding{nullptr};
  PositionalEncoding positions{nullptr};
  nn::TransformerEncoder encoder{nullptr};
  nn::LayerNorm norm{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE(Model);

// (tokens, targets) of the k-th batch.
static std::tuple<torch::Tensor, torch::Tensor> batch(int64_t k, int64_t size = 16) {
  auto tokens =
      torch::arange(size * kLength, torch::kInt64).mul(7 + k % 5).add(k).remainder(kNumbers - 2).add(1);
  tokens = tokens.view({size, kLength}).contiguous();
  auto targets = torch::zeros_like(tokens);
  targets.slice(1, 1).copy_((tokens.slice(1, 0, kLength - 1) + 3) % kNumbers);
  return {tokens, targets};
}

// Linear growth of the rate for the first steps, then a decay with the root of the step.
static void set_rate(torch::optim::Optimizer& optimizer, int64_t step, int64_t warmup) {
  const double factor = std::min(double(step) / double(warmup), std::sqrt(double(warmup) / double(step)));
  for (auto& group : optimizer.param_groups())
    static_cast<torch::optim::AdamWOptions&>(group.options()).lr(5e-3 * factor);
}

int main() {
  Model model(2);
  fill_parameters(*model, 0.25);
  std::cout << model->parameters().size() << " parameters, " << model->buffers().size() << " buffer"
            << std::endl;

  torch::optim::AdamW optimizer(model->parameters(),
                                torch::optim::AdamWOptions(5e-3).betas({0.9, 0.98}).weight_decay(0.01));
  auto criterion =
      nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().ignore_index(0).reduction(torch::kMean));
  for (int64_t step = 1; step <= 40; ++step) {
    set_rate(optimizer, step, 10);
    auto [tokens, targets] = batch(step);
    auto logits = model(tokens);
    auto loss = criterion(logits.view({-1, kNumbers}), targets.view({-1}));
    optimizer.zero_grad(/*set_to_none=*/true);
    loss.backward();
    nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    if (step % 5 == 0) std::printf("step %ld loss %.4f\n", long(step), loss.item<float>());
  }

  model->eval();
  torch::NoGradGuard no_grad;
  auto [tokens, targets] = batch(3, 4);
  const auto logits = model->forward(tokens);
  const auto [best, index] = logits.softmax(-1).max(-1);
  const auto counted = targets != 0;
  const auto right = (index == targets).logical_and(counted).sum();
  std::printf("%ld of %ld right, mean confidence %.3f\n", long(right.item<int64_t>()),
              long(counted.sum().item<int64_t>()), best.mean().item<float>());

  // A position does not see later ones.
  auto changed = tokens.clone();
  changed.index_put_({torch::indexing::Ellipsis, -1}, 1);
  const auto difference = (model->forward(changed) - logits).abs().sum(-1).amax(0);
  std::printf("change of the last input: before %.6f\n",
              difference.slice(0, 0, kLength - 1).max().item<float>());
  TORCH_CHECK(difference[-1].item<float>() > 0, "the last position sees itself");
}
