// Training as in the examples, on a device: losses of each step in every mode and with every choice of --saved compared
// with those of eager steps on the CPU. The models are a GPT and a recurrent network as in train_gpt and train_rnn,
// small enough for the host in place of a device; //tools/gpu_bundle has the programs for a real one.
//
// Not tested here: the programs themselves on the host (device_losses.sh: train_cnn and train_digits).
#include <catch2/catch.hpp>

#include <cmath>

#include "examples/common/saved_choice.h"
#include "examples/common/training_step.h"
#include "examples/gpt.h"
#include "tests/cuda/test_device.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

constexpr int64_t kVocabulary = 11, kBlock = 8, kBatch = 4, kSteps = 3;

struct SmallGpt : examples::Gpt {
  SmallGpt() : Gpt({.vocabulary = kVocabulary, .block = kBlock, .width = 16, .heads = 2, .layers = 2}) {}
};

struct Recurrent : rg::nn::Module {
  rg::nn::Embedding table{this, "table", kVocabulary, 12};
  rg::nn::LSTM layer{this, "layer", 12, 16, {.batch_first = true}};
  rg::nn::Linear head{this, "head", 16, kVocabulary};

  Tensor loss(const Tensor& tokens, const Tensor& next) const {
    const Tensor scores = head(layer(table(tokens)).output);
    return rg::cross_entropy(rg::flatten(scores, 0, 1), next.view({-1}));
  }
};

// The loss of each step; the same data and initial values for all.
template <class Model>
std::vector<double> losses_of(rg::Device device, const std::string& mode, const std::string& saved) {
  rg::manual_seed(1);
  Model model;
  model.to(device);
  rg::optim::AdamW optimizer(model.parameters(), {.lr = 1e-2});
  examples::Options options;
  options.saved = saved;
  const examples::SavedChoice choice(options, model.parameters());
  const auto loss = [&](const Tensor& tokens, const Tensor& next) { return model.loss(tokens, next); };
  const auto update = [&] {
    rg::optim::clip_grad_norm_(model.parameters(), 1.0);
    optimizer.step();
  };
  examples::TrainingStep step(mode, model, {loss, update}, choice.hooks());
  std::vector<double> losses;
  const rg::PeakMeter watch;
  for (int64_t i = 0; i < kSteps; ++i) {
    const Tensor tokens = rg::randint(0, kVocabulary, {kBatch, kBlock + 1});
    const Tensor there = tokens.to(device);
    losses.push_back(step(there.narrow(1, 0, kBlock).contiguous(), there.narrow(1, 1, kBlock).contiguous())
                         .template item<double>());
  }
  if (mode == "eager") return losses;
  CHECK(step.stats().captures == 1);
  CHECK(watch.report().differing == 0);
  CHECK((watch.report().scratch_bytes > 0) == !(device == rg::kCPU));
  return losses;
}

template <class Model>
void expect_same_losses(const std::string& mode, const std::string& saved, double tolerance) {
  INFO("mode " << mode << ", saved " << saved);
  const std::vector<double> here = losses_of<Model>(rg::kCPU, "eager", saved);
  const std::vector<double> there = losses_of<Model>(rg::kCUDA, mode, saved);
  for (size_t i = 0; i < here.size(); ++i) {
    INFO("step " << i + 1 << ": " << there[i] << ", on the CPU " << here[i]);
    CHECK(std::abs(there[i] - here[i]) <= tolerance * here[i]);
  }
  CHECK(there == losses_of<Model>(rg::kCUDA, "eager", saved));
}

}  // namespace

TEMPLATE_TEST_CASE("losses on a device, in every mode", "", SmallGpt, Recurrent) {
  retrograd::device_on_host();
  for (const char* mode : {"eager", "traced", "compiled", "step"})
    expect_same_losses<TestType>(mode, "keep", 1e-5);
}

TEMPLATE_TEST_CASE("losses on a device, with every choice of what is saved", "", SmallGpt, Recurrent) {
  retrograd::device_on_host();
  for (const char* mode : {"eager", "traced", "compiled", "step"})
    expect_same_losses<TestType>(mode, "offload", 1e-5);
  expect_same_losses<TestType>("traced", "offload-file", 1e-5);
  // A value rounded for the backward may be rounded to the neighbouring number.
  expect_same_losses<TestType>("traced", "half", 1e-4);
  expect_same_losses<TestType>("traced", "fp8", 1e-3);
}
