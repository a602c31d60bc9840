// A small GPT over characters: nanoGPT's CPU setting. Pre-norm blocks of causal self-attention and a GELU network, no
// biases, the head tied to the token embedding. Initial weights: normal(0, 0.02); those that write to the residual
// stream are divided by sqrt(2 layers).
#pragma once

#include <cmath>

#include "examples/recomputation.h"
#include "retrograd/retrograd.h"

namespace examples {

struct GptConfig {
  int64_t vocabulary = 0, block = 64, width = 128, heads = 4, layers = 4;
};

/// x + attention(norm(x)), then x + network(norm(x)).
struct Block : retrograd::nn::Module {
  retrograd::nn::LayerNorm ln1, ln2;
  retrograd::nn::CausalSelfAttention attn;
  retrograd::nn::Linear fc, out;

  Block(Module* parent, std::string name, const GptConfig& c)
      : Module(parent, std::move(name)),
        ln1(this, "ln1", {c.width}, {.bias = false}),
        ln2(this, "ln2", {c.width}, {.bias = false}),
        attn(this, "attn", c.width, c.heads, {.bias = false}),
        fc(this, "fc", c.width, 4 * c.width, {.bias = false}),
        out(this, "out", 4 * c.width, c.width, {.bias = false}) {
    const double residual = 0.02 / std::sqrt(2.0 * static_cast<double>(c.layers));
    retrograd::nn::init::normal_(attn.qkv.weight, 0, 0.02);
    retrograd::nn::init::normal_(attn.proj.weight, 0, residual);
    retrograd::nn::init::normal_(fc.weight, 0, 0.02);
    retrograd::nn::init::normal_(out.weight, 0, residual);
  }

  retrograd::Tensor forward(const retrograd::Tensor& x) const {
    const retrograd::Tensor y = x + attn(ln1(x));
    return y + out(retrograd::gelu(fc(ln2(y))));
  }
};

struct Gpt : retrograd::nn::Module {
  const GptConfig config;
  retrograd::nn::Embedding wte, wpe;
  retrograd::nn::ModuleList<Block> blocks{this, "blocks"};
  retrograd::nn::LayerNorm lnf;
  Recomputation recomputation;

  explicit Gpt(const GptConfig& c)
      : config(c),
        wte(this, "wte", c.vocabulary, c.width),
        wpe(this, "wpe", c.block, c.width),
        lnf(this, "lnf", {c.width}, {.bias = false}) {
    retrograd::nn::init::normal_(wte.weight, 0, 0.02);
    retrograd::nn::init::normal_(wpe.weight, 0, 0.02);
    for (int64_t i = 0; i < c.layers; ++i) blocks.emplace_back(c);
  }

  /// tokens int64 [batch, length], length <= block -> scores of the next token [batch, length, vocabulary].
  retrograd::Tensor forward(const retrograd::Tensor& tokens) const {
    retrograd::Tensor h = wte(tokens) + wpe(positions(tokens));
    for (const auto& block : blocks.items())
      h = recomputation.block([&](const retrograd::Tensor& x) { return block->forward(x); }, h);
    return retrograd::linear(lnf(h), wte.weight);
  }

  /// The positions of the tokens: 0, 1, ..., on their device.
  static retrograd::Tensor positions(const retrograd::Tensor& tokens) {
    return retrograd::arange(0, tokens.sym_size(1), 1,
                             retrograd::TensorOptions(retrograd::kInt64, tokens.device()));
  }

  /// The mean cross entropy of `next` [batch, length], in nats.
  retrograd::Tensor loss(const retrograd::Tensor& tokens, const retrograd::Tensor& next) const {
    const auto scope = recomputation.scope();
    return retrograd::cross_entropy(forward(tokens).view({-1, config.vocabulary}), next.view({-1}));
  }
};

}  // namespace examples
