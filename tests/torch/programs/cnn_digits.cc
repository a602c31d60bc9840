// The MNIST example of the documentation, on smaller digits: a convolutional network and torch::data.
// usage: cnn_digits digits.csv
#include <torch/torch.h>

#include <cstdio>
#include <iostream>

#include "digits.h"
#include "weights.h"

struct Net : torch::nn::Module {
  Net()
      : conv1(torch::nn::Conv2dOptions(1, 8, /*kernel_size=*/3).padding(1)),
        conv2(torch::nn::Conv2dOptions(8, 16, /*kernel_size=*/3)),
        fc1(16 * 3 * 3, 32),
        fc2(32, 10) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("conv2_drop", conv2_drop);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(conv1->forward(x));
    x = torch::relu(torch::max_pool2d(conv2_drop->forward(conv2->forward(x)), 2));
    x = x.view({-1, 16 * 3 * 3});
    x = torch::relu(fc1->forward(x));
    x = torch::dropout(x, /*p=*/0.0, /*training=*/is_training());
    x = fc2->forward(x);
    return torch::log_softmax(x, /*dim=*/1);
  }

  torch::nn::Conv2d conv1;
  torch::nn::Conv2d conv2;
  torch::nn::Dropout2d conv2_drop{torch::nn::Dropout2dOptions().p(0.0)};
  torch::nn::Linear fc1;
  torch::nn::Linear fc2;
};

template <typename DataLoader>
void train(size_t epoch, Net& model, torch::Device device, DataLoader& data_loader,
           torch::optim::Optimizer& optimizer, size_t dataset_size) {
  model.train();
  size_t batch_idx = 0;
  for (auto& batch : data_loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    optimizer.zero_grad();
    auto output = model.forward(data);
    auto loss = torch::nll_loss(output, targets);
    AT_ASSERT(!std::isnan(loss.template item<float>()));
    loss.backward();
    optimizer.step();
    if (batch_idx++ % 4 == 0)
      std::printf("Train Epoch: %zu [%5ld/%5zu] Loss: %.5f\n", epoch,
                  static_cast<long>(batch_idx * static_cast<size_t>(batch.data.size(0))), dataset_size,
                  loss.template item<float>());
  }
}

template <typename DataLoader>
void test(Net& model, torch::Device device, DataLoader& data_loader, size_t dataset_size) {
  torch::NoGradGuard no_grad;
  model.eval();
  double test_loss = 0;
  int64_t correct = 0;
  for (const auto& batch : data_loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    auto output = model.forward(data);
    test_loss +=
        torch::nll_loss(output, targets, /*weight=*/{}, torch::Reduction::Sum).template item<float>();
    auto pred = output.argmax(1);
    correct += pred.eq(targets).sum().template item<int64_t>();
  }
  test_loss /= static_cast<double>(dataset_size);
  std::printf("Test set: Average loss: %.4f | Correct: %ld of %zu\n", test_loss, static_cast<long>(correct),
              dataset_size);
}

int main(int argc, char** argv) {
  torch::manual_seed(1);
  const std::string path = argc > 1 ? argv[1] : "digits.csv";
  torch::Device device(torch::kCPU);

  Net model;
  model.to(device);
  fill_parameters(model, 0.2);

  auto train_dataset = Digits(path)
                           .map(torch::data::transforms::Normalize<>(0.3, 0.4))
                           .map(torch::data::transforms::Stack<>());
  const size_t train_size = train_dataset.size().value();
  auto train_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(train_dataset), /*batch_size=*/128);

  auto test_dataset = Digits(path, Digits::Mode::kTest)
                          .map(torch::data::transforms::Normalize<>(0.3, 0.4))
                          .map(torch::data::transforms::Stack<>());
  const size_t test_size = test_dataset.size().value();
  auto test_loader =
      torch::data::make_data_loader(std::move(test_dataset), torch::data::DataLoaderOptions().batch_size(64));

  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.05).momentum(0.5));
  torch::optim::StepLR scheduler(optimizer, /*step_size=*/1, /*gamma=*/0.7);
  for (size_t epoch = 1; epoch <= 3; ++epoch) {
    train(epoch, model, device, *train_loader, optimizer, train_size);
    test(model, device, *test_loader, test_size);
    scheduler.step();
  }
}
