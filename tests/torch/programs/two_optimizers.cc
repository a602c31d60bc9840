// An autoencoder whose halves have optimizers of their own, with groups, schedules, and options changed on the way.
#include <torch/torch.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <unordered_map>
#include <vector>

#include "weights.h"

namespace nn = torch::nn;
namespace optim = torch::optim;
namespace F = torch::nn::functional;

struct Autoencoder : nn::Module {
  Autoencoder() {
    encoder = register_module(
        "encoder", nn::Sequential(nn::Linear(12, 8), nn::ELU(nn::ELUOptions().alpha(0.7)), nn::Linear(8, 3)));
    decoder = register_module("decoder", nn::Sequential({{"in", nn::AnyModule(nn::Linear(3, 8))},
                                                         {"act", nn::AnyModule(nn::SiLU())},
                                                         {"out", nn::AnyModule(nn::Linear(8, 12))}}));
  }
  torch::Tensor encode(torch::Tensor x) { return encoder->forward(x); }
  torch::Tensor forward(torch::Tensor x) { return decoder->forward(encode(x)); }

  nn::Sequential encoder{nullptr}, decoder{nullptr};
};

// Weights decay, biases do not.
static std::vector<optim::OptimizerParamGroup> groups_of(nn::Module& module) {
  std::vector<torch::Tensor> weights, biases;
  for (const auto& entry : module.named_parameters())
    (entry.value().dim() > 1 ? weights : biases).push_back(entry.value());
  std::vector<optim::OptimizerParamGroup> groups;
  groups.emplace_back(weights,
                      std::make_unique<optim::AdamWOptions>(optim::AdamWOptions(2e-2).weight_decay(0.05)));
  groups.emplace_back(biases,
                      std::make_unique<optim::AdamWOptions>(optim::AdamWOptions(1e-2).weight_decay(0)));
  return groups;
}

static double rate_of(optim::Optimizer& optimizer) {
  return optimizer.param_groups().front().options().get_lr();
}

int main() {
  auto model = std::make_shared<Autoencoder>();
  fill_parameters(*model, 0.35);
  for (const auto& child : model->named_children()) std::cout << child.key() << " ";
  std::cout << model->decoder->size() << std::endl;

  optim::AdamW encoder_optimizer(groups_of(*model->encoder), optim::AdamWOptions(1e-2));
  optim::SGD decoder_optimizer(model->decoder->parameters(),
                               optim::SGDOptions(0.2).momentum(0.8).dampening(0.1));
  std::vector<optim::Optimizer*> optimizers{&encoder_optimizer, &decoder_optimizer};
  optim::StepLR schedule(decoder_optimizer, 15, 0.5);
  optim::ReduceLROnPlateauScheduler plateau(encoder_optimizer, optim::ReduceLROnPlateauScheduler::min, 0.5f,
                                            2);

  const auto x = waves({20, 12}, 0.21) * 0.8;
  for (int step = 1; step <= 45; ++step) {
    for (auto* optimizer : optimizers) optimizer->zero_grad();
    const auto code = model->encode(x);
    const auto output = model->decoder->forward(code);
    const auto loss = F::mse_loss(output, x, F::MSELossFuncOptions(torch::kMean)) + 1e-3 * code.pow(2).mean();
    loss.backward();
    nn::utils::clip_grad_value_(model->decoder->parameters(), 0.5);
    for (auto* optimizer : optimizers) optimizer->step();
    schedule.step();
    if (step % 15 == 0) {
      plateau.step(loss.item<float>());
      std::printf("step %d loss %.5f rates %.4f %.4f\n", step, loss.item<float>(), rate_of(encoder_optimizer),
                  rate_of(decoder_optimizer));
    }
  }

  // Only the decoder, then, with a rate of its own.
  for (auto& parameter : model->encoder->parameters()) parameter.set_requires_grad(false);
  for (auto& group : decoder_optimizer.param_groups()) {
    auto& options = static_cast<optim::SGDOptions&>(group.options());
    options.lr(options.lr() * 2).momentum(0.5);
  }
  for (int step = 1; step <= 10; ++step) {
    decoder_optimizer.zero_grad();
    const auto loss = F::l1_loss(model->forward(x), x);
    loss.backward();
    decoder_optimizer.step();
    if (step % 5 == 0) std::printf("decoder %d loss %.5f\n", step, loss.item<float>());
  }

  // The whole model by a solver that asks for the loss itself; and a rule with a state for each element.
  for (auto& parameter : model->parameters()) parameter.requires_grad_(true);
  optim::LBFGS solver(model->parameters(), optim::LBFGSOptions(0.5).max_iter(4).history_size(5));
  auto closure = [&]() {
    solver.zero_grad();
    auto loss = F::mse_loss(model->forward(x), x);
    loss.backward();
    return loss;
  };
  for (int step = 0; step < 2; ++step) std::printf("L-BFGS loss %.5f\n", solver.step(closure).item<float>());

  optim::Adagrad adagrad({model->decoder->parameters()}, optim::AdagradOptions(0.05).lr_decay(0.01));
  for (int step = 0; step < 3; ++step) {
    adagrad.zero_grad();
    const auto loss = F::huber_loss(model->forward(x), x, F::HuberLossFuncOptions().delta(0.5));
    loss.backward();
    adagrad.step();
    std::printf("Adagrad loss %.5f\n", loss.item<float>());
  }
}
