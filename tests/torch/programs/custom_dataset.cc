// Data sets of one's own: examples from a file, transforms, worker threads, samplers, streams, errors of workers.
// usage: custom_dataset digits.csv
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <utility>

#include "digits.h"
#include "weights.h"

namespace data = torch::data;
using Example = data::Example<>;

// Pairs of a number and its square, without tensors.
struct Squares : data::datasets::Dataset<Squares, std::pair<double, double>> {
  explicit Squares(size_t count) : count(count) {}
  std::pair<double, double> get(size_t index) override {
    if (index == 13) throw std::invalid_argument("thirteen");
    return {double(index), double(index * index)};
  }
  torch::optional<size_t> size() const override { return count; }
  size_t count;
};

// A stream: it decides itself what a batch is.
struct Countdown : data::datasets::StreamDataset<Countdown, std::vector<int>> {
  std::vector<int> get_batch(size_t batch_size) override {
    std::vector<int> batch;
    for (size_t i = 0; i < batch_size; ++i) batch.push_back(next--);
    return batch;
  }
  torch::optional<size_t> size() const override { return torch::nullopt; }
  int next = 10;
};

void train(const std::string& path) {
  auto dataset = Digits(path)
                     .map(data::transforms::TensorLambda<>([](torch::Tensor x) { return x.flatten() - 0.5; }))
                     .map(data::transforms::Lambda<Example>([](Example e) {
                       return Example(e.data, torch::one_hot(e.target, 10).to(torch::kFloat));
                     }))
                     .map(data::transforms::Stack<>());
  auto loader = data::make_data_loader<data::samplers::SequentialSampler>(
      std::move(dataset), data::DataLoaderOptions().batch_size(100).workers(2).max_jobs(4).drop_last(true));

  torch::nn::Sequential model(torch::nn::Linear(64, 24), torch::nn::ReLU(), torch::nn::Linear(24, 10));
  fill_parameters(*model, 0.2);
  torch::optim::Adam optimizer(model->parameters(), 5e-3);
  for (int epoch = 1; epoch <= 2; ++epoch) {
    size_t batches = 0, items = 0;
    float last = 0;
    for (Example& batch : *loader) {
      optimizer.zero_grad();
      auto loss =
          torch::nn::functional::binary_cross_entropy_with_logits(model->forward(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      last = loss.item<float>();
      items += static_cast<size_t>(batch.data.size(0));
      if (++batches % 5 == 0) std::printf("epoch %d batch %zu loss %.5f\n", epoch, batches, last);
    }
    std::printf("epoch %d: %zu batches, %zu items, loss %.5f\n", epoch, batches, items, last);
  }
}

void numbers() {
  auto sum = [](std::vector<std::pair<double, double>> batch) {
    double total = 0;
    for (const auto& [x, square] : batch) total += square - x;
    return total;
  };
  using Batch = std::vector<std::pair<double, double>>;
  auto dataset = Squares(10).map(data::transforms::BatchLambda<Batch, double>(sum));
  auto loader = data::make_data_loader(std::move(dataset), data::samplers::SequentialSampler(10),
                                       data::DataLoaderOptions(4));
  for (double total : *loader) std::printf("total %.1f\n", total);

  auto shuffled =
      data::make_data_loader(Squares(12), data::DataLoaderOptions(5).enforce_ordering(false).workers(3));
  double total = 0;
  for (const auto& batch : *shuffled)
    for (const auto& example : batch) total += example.second;
  std::printf("all in any order: %.1f\n", total);
}

void streams() {
  auto loader = data::make_data_loader(Countdown(), data::samplers::StreamSampler(/*epoch_size=*/7),
                                       data::DataLoaderOptions().batch_size(3));
  for (auto& batch : *loader) {
    std::printf("stream:");
    for (int number : batch) std::printf(" %d", number);
    std::printf("\n");
  }
}

void tensors() {
  data::datasets::TensorDataset dataset(torch::arange(6, torch::kFloat).view({3, 2}));
  auto loader = data::make_data_loader<data::samplers::SequentialSampler>(
      dataset.map(data::transforms::Stack<data::TensorExample>()), 2);
  for (data::TensorExample& batch : *loader) std::cout << batch.data << std::endl;

  data::samplers::DistributedSequentialSampler sampler(/*size=*/7, /*num_replicas=*/2, /*rank=*/1);
  while (auto indices = sampler.next(3)) {
    std::printf("rank 1:");
    for (size_t index : *indices) std::printf(" %zu", index);
    std::printf("\n");
  }
}

void errors() {
  auto loader = data::make_data_loader<data::samplers::SequentialSampler>(
      Squares(20), data::DataLoaderOptions().batch_size(5).workers(1).timeout(std::chrono::seconds(30)));
  size_t good = 0;
  try {
    for (auto& batch : *loader) good += batch.size();
  } catch (const data::WorkerException& e) {
    std::printf("after %zu examples: ", good);
    try {
      std::rethrow_exception(e.original_exception);
    } catch (const std::invalid_argument& original) {
      std::printf("invalid argument: %s\n", original.what());
    }
  }
}

int main(int argc, char** argv) {
  train(argc > 1 ? argv[1] : "digits.csv");
  numbers();
  streams();
  tensors();
  errors();
}
