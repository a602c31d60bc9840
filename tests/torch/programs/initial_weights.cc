// Weights carried between programs: a text file of initial weights, torch::save and torch::load, archives, clones.
#include <torch/torch.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "weights.h"

struct BlockImpl : torch::nn::Cloneable<BlockImpl> {
  BlockImpl(int64_t width, bool residual) : width(width), residual(residual) { reset(); }
  void reset() override {
    fc = register_module("fc", torch::nn::Linear(width, width));
    norm =
        register_module("norm", torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(width).momentum(0.2)));
    scale = register_parameter("scale", torch::ones({width}));
  }
  torch::Tensor forward(torch::Tensor x) {
    auto y = torch::gelu(norm(fc(x))) * scale;
    return residual ? x + y : y;
  }
  int64_t width;
  bool residual;
  torch::nn::Linear fc{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::Tensor scale;
};
TORCH_MODULE(Block);

struct NetImpl : torch::nn::Cloneable<NetImpl> {
  NetImpl() { reset(); }
  void reset() override {
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (int i = 0; i < 2; ++i) blocks->push_back(Block(6, i > 0));
    head = register_module("head", torch::nn::Linear(6, 3));
  }
  torch::Tensor forward(torch::Tensor x) {
    for (const auto& block : *blocks) x = block->as<BlockImpl>()->forward(x);
    return head(x);
  }
  torch::nn::ModuleList blocks{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Net);

// Each parameter: its name, its sizes, its numbers.
static void write_weights(torch::nn::Module& module, const std::string& path) {
  std::ofstream file(path);
  file.precision(9);
  for (const auto& entry : module.named_parameters()) {
    const auto value = entry.value().detach().contiguous();
    file << entry.key() << ' ' << value.dim();
    for (int64_t size : value.sizes()) file << ' ' << size;
    const float* data = value.data_ptr<float>();
    for (int64_t i = 0; i < value.numel(); ++i) file << ' ' << data[i];
    file << '\n';
  }
}

static void read_weights(torch::nn::Module& module, const std::string& path) {
  torch::NoGradGuard no_grad;
  auto parameters = module.named_parameters();
  std::ifstream file(path);
  std::string line, name;
  size_t count = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    int64_t rank = 0;
    words >> name >> rank;
    std::vector<int64_t> sizes(static_cast<size_t>(rank));
    for (auto& size : sizes) words >> size;
    std::vector<float> numbers;
    for (float number = 0; words >> number;) numbers.push_back(number);
    torch::Tensor* parameter = parameters.find(name);
    TORCH_CHECK(parameter != nullptr, "no parameter ", name);
    parameter->copy_(torch::from_blob(numbers.data(), sizes, torch::TensorOptions(torch::kFloat32)));
    ++count;
  }
  TORCH_CHECK(count == parameters.size(), count, " of ", parameters.size(), " parameters are in the file");
}

static float train(Net& net, torch::optim::Optimizer& optimizer, int steps) {
  const auto x = waves({10, 6}, 0.37);
  const auto target = torch::arange(10, torch::kLong).remainder(3);
  float last = 0;
  net->train();
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    auto loss = torch::cross_entropy_loss(net(x), target);
    loss.backward();
    optimizer.step();
    last = loss.item<float>();
  }
  return last;
}

int main() {
  const auto folder = std::filesystem::temp_directory_path() / "initial_weights_program";
  std::filesystem::create_directories(folder);
  const std::string text = (folder / "weights.txt").string(), model = (folder / "model.pt").string(),
                    state = (folder / "optimizer.pt").string(), tensors = (folder / "tensors.pt").string();

  Net net;
  fill_parameters(*net, 0.4);
  write_weights(*net, text);

  Net other;
  read_weights(*other, text);
  torch::optim::RMSprop optimizer(other->parameters(),
                                  torch::optim::RMSpropOptions(2e-3).alpha(0.9).momentum(0.5));
  std::printf("loss %.5f\n", train(other, optimizer, 1));
  std::printf("loss %.5f\n", train(other, optimizer, 9));

  // A training that goes on elsewhere.
  torch::save(other, model);
  torch::save(optimizer, state);
  Net resumed;
  torch::load(resumed, model);
  torch::optim::RMSprop resumed_optimizer(resumed->parameters(),
                                          torch::optim::RMSpropOptions(2e-3).alpha(0.9).momentum(0.5));
  torch::load(resumed_optimizer, state);
  const float here = train(other, optimizer, 5), there = train(resumed, resumed_optimizer, 5);
  std::printf("loss %.5f and elsewhere %.5f\n", here, there);

  // Running statistics were carried, too.
  const auto buffers = resumed->named_buffers();
  const auto* mean = buffers.find("blocks.0.norm.running_mean");
  TORCH_CHECK(mean != nullptr && mean->ne(0).any().item<bool>());

  // Tensors by position, and by name in an archive.
  torch::save(std::vector<torch::Tensor>{torch::arange(3), torch::ones({2, 2})}, tensors);
  std::vector<torch::Tensor> loaded;
  torch::load(loaded, tensors);
  std::printf("%zu tensors, sum %.1f\n", loaded.size(), (loaded[0].sum() + loaded[1].sum()).item<float>());

  std::stringstream stream;
  torch::serialize::OutputArchive out;
  out.write("weight", other->head->weight);
  out.write("steps", torch::tensor(int64_t{15}), /*is_buffer=*/true);
  out.save_to(stream);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  torch::Tensor weight, steps;
  in.read("weight", weight);
  in.read("steps", steps, true);
  std::printf("equal %d, steps %ld\n", torch::equal(weight, other->head->weight) ? 1 : 0,
              long(steps.item<int64_t>()));

  // A clone is trained without its original.
  auto copy = std::dynamic_pointer_cast<NetImpl>(other->clone());
  {
    torch::NoGradGuard no_grad;
    for (auto& parameter : copy->parameters()) parameter.zero_();
  }
  std::printf("original %.4f, copy %.4f\n", other->head->weight.abs().sum().item<float>(),
              copy->head->weight.abs().sum().item<float>());
  std::filesystem::remove_all(folder);
}
