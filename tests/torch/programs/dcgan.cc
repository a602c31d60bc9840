// The DCGAN of the tutorial "Using the PyTorch C++ Frontend", with images of 8 by 8 pixels from a formula.
#include <torch/torch.h>

#include <cstdio>
#include <iostream>
#include <tuple>

#include "weights.h"

const int64_t kNoiseSize = 6;
const int64_t kBatchSize = 16;
const int64_t kNumberOfEpochs = 2;
const double kLearningRate = 2e-3;
const double kBeta1 = 0.5;

struct DCGANGeneratorImpl : torch::nn::Module {
  DCGANGeneratorImpl(int kNoiseSize)
      : conv1(torch::nn::ConvTranspose2dOptions(kNoiseSize, 16, 2).bias(false)),
        batch_norm1(16),
        conv2(torch::nn::ConvTranspose2dOptions(16, 8, 4).stride(2).padding(1).bias(false)),
        batch_norm2(8),
        conv3(torch::nn::ConvTranspose2dOptions(8, 1, 4).stride(2).padding(1).bias(false)) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("conv3", conv3);
    register_module("batch_norm1", batch_norm1);
    register_module("batch_norm2", batch_norm2);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(batch_norm1(conv1(x)));
    x = torch::relu(batch_norm2(conv2(x)));
    x = torch::tanh(conv3(x));
    return x;
  }

  torch::nn::ConvTranspose2d conv1;
  torch::nn::BatchNorm2d batch_norm1;
  torch::nn::ConvTranspose2d conv2;
  torch::nn::BatchNorm2d batch_norm2;
  torch::nn::ConvTranspose2d conv3;
};
TORCH_MODULE(DCGANGenerator);

torch::nn::Sequential create_discriminator() {
  return torch::nn::Sequential(
      // Layer 1
      torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 4).stride(2).padding(1).bias(false)),
      torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2)),
      // Layer 2
      torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 16, 4).stride(2).padding(1).bias(false)),
      torch::nn::BatchNorm2d(16), torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2)),
      // Output
      torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 1, 2).stride(1).padding(0).bias(false)),
      torch::nn::Sigmoid());
}

// Images in which a wave runs from the upper left corner.
class Waves : public torch::data::datasets::Dataset<Waves> {
 public:
  torch::data::Example<> get(size_t index) override {
    const auto k = static_cast<double>(index % 8);
    auto image = waves({1, 8, 8}, 0.3 + 0.05 * k, k) * 0.5 + 0.5;
    return {image, torch::tensor(static_cast<int64_t>(index))};
  }
  torch::optional<size_t> size() const override { return 64; }
};

int main() {
  torch::manual_seed(0);
  torch::Device device = torch::kCPU;

  DCGANGenerator generator(kNoiseSize);
  generator->to(device);
  torch::nn::Sequential discriminator = create_discriminator();
  discriminator->to(device);
  fill_parameters(*generator, 0.2);
  fill_parameters(*discriminator, 0.2);

  auto dataset =
      Waves().map(torch::data::transforms::Normalize<>(0.5, 0.5)).map(torch::data::transforms::Stack<>());
  const int64_t batches_per_epoch = static_cast<int64_t>(
      std::ceil(static_cast<double>(dataset.size().value()) / static_cast<double>(kBatchSize)));
  auto data_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(dataset), torch::data::DataLoaderOptions().batch_size(kBatchSize).workers(2));

  torch::optim::Adam generator_optimizer(
      generator->parameters(),
      torch::optim::AdamOptions(kLearningRate).betas(std::make_tuple(kBeta1, 0.999)));
  torch::optim::Adam discriminator_optimizer(
      discriminator->parameters(),
      torch::optim::AdamOptions(kLearningRate).betas(std::make_tuple(kBeta1, 0.999)));

  for (int64_t epoch = 1; epoch <= kNumberOfEpochs; ++epoch) {
    int64_t batch_index = 0;
    for (const torch::data::Example<>& batch : *data_loader) {
      // Train discriminator with real images.
      discriminator->zero_grad();
      torch::Tensor real_images = batch.data.to(device);
      torch::Tensor real_labels = torch::empty(batch.data.size(0), device).fill_(0.9);
      torch::Tensor real_output = discriminator->forward(real_images).reshape(real_labels.sizes());
      torch::Tensor d_loss_real = torch::binary_cross_entropy(real_output, real_labels);
      d_loss_real.backward();

      // Train discriminator with fake images.
      torch::Tensor noise =
          waves({batch.data.size(0), kNoiseSize, 1, 1}, 1.7, double(epoch * 10 + batch_index));
      torch::Tensor fake_images = generator->forward(noise);
      torch::Tensor fake_labels = torch::zeros(batch.data.size(0), device);
      torch::Tensor fake_output = discriminator->forward(fake_images.detach()).reshape(fake_labels.sizes());
      torch::Tensor d_loss_fake = torch::binary_cross_entropy(fake_output, fake_labels);
      d_loss_fake.backward();

      torch::Tensor d_loss = d_loss_real + d_loss_fake;
      discriminator_optimizer.step();

      // Train generator.
      generator->zero_grad();
      fake_labels.fill_(1);
      fake_output = discriminator->forward(fake_images).reshape(fake_labels.sizes());
      torch::Tensor g_loss = torch::binary_cross_entropy(fake_output, fake_labels);
      g_loss.backward();
      generator_optimizer.step();
      batch_index++;
      std::printf("[%2ld/%2ld][%3ld/%3ld] D_loss: %.4f | G_loss: %.4f\n", long(epoch), long(kNumberOfEpochs),
                  long(batch_index), long(batches_per_epoch), d_loss.item<float>(), g_loss.item<float>());
    }
  }

  generator->eval();
  torch::NoGradGuard no_grad;
  torch::Tensor samples = generator->forward(waves({4, kNoiseSize, 1, 1}, 0.9));
  std::printf("samples: %s mean %.4f\n", c10::str(samples.sizes()).c_str(), samples.mean().item<float>());
  std::printf("running mean: %.5f\n", generator->batch_norm1->running_mean.sum().item<float>());
}
