// A polynomial of degree 4 is fitted to its own values: batches made by functions, an update written by hand.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>

#include "weights.h"

constexpr int64_t kDegree = 4;
constexpr int64_t kBatch = 32;

// [x, x^2, x^3, x^4] of each x.
static torch::Tensor make_features(torch::Tensor x) {
  x = x.unsqueeze(1);
  std::vector<torch::Tensor> xs;
  for (int64_t i = 0; i < kDegree; ++i) xs.push_back(x.pow(i + 1));
  return torch::cat(xs, 1);
}

// "y = 1.00 x^1 ... + 0.50"
static std::string poly_desc(const torch::Tensor& weight, const torch::Tensor& bias) {
  const auto size = weight.size(0);
  auto text = std::string("y = ");
  char number[32];
  for (int64_t i = 0; i < size; ++i) {
    std::snprintf(number, sizeof number, "%.4f", weight[i].item<float>());
    text += std::string(number) + " x^" + std::to_string(size - i) + " ";
  }
  std::snprintf(number, sizeof number, "%.4f", bias[0].item<float>());
  return text + "+ " + number;
}

// The k-th batch: points, and the polynomial there.
static std::pair<torch::Tensor, torch::Tensor> get_batch(const torch::Tensor& w, const torch::Tensor& b,
                                                         int64_t k) {
  const auto x = waves({kBatch}, 1.1, static_cast<double>(k));
  auto features = make_features(x);
  auto y = features.mm(w) + b.item();
  return std::make_pair(features, y);
}

int main() {
  const auto w_target = waves({kDegree, 1}, 1.9) * 5;
  const auto b_target = torch::full({1}, 2.5);

  auto fc = torch::nn::Linear(w_target.size(0), 1);
  fill_parameters(*fc);

  float loss = 0;
  int64_t batch_idx = 0;
  while (++batch_idx <= 200) {
    torch::Tensor batch_x, batch_y;
    std::tie(batch_x, batch_y) = get_batch(w_target, b_target, batch_idx);

    fc->zero_grad();
    auto output = torch::smooth_l1_loss(fc(batch_x), batch_y);
    loss = output.item<float>();
    output.backward();

    for (auto& param : fc->parameters()) param.data().add_(-0.1 * param.grad());
    if (batch_idx % 25 == 0) std::printf("batch %ld loss %.6f\n", static_cast<long>(batch_idx), loss);
    if (loss < 1e-3f) break;
  }

  std::cout << "Loss: " << loss << " after " << batch_idx << " batches" << std::endl;
  std::cout << "==> Learned function:\t" << poly_desc(fc->weight.view({-1}), fc->bias) << std::endl;
  std::cout << "==> Actual function:\t" << poly_desc(w_target.view({-1}), b_target) << std::endl;

  // Nodes in place of powers: a network with one hidden layer, and the solver with the line search.
  torch::nn::Sequential net(torch::nn::Linear(1, 8), torch::nn::Tanh(), torch::nn::Linear(8, 1));
  fill_parameters(*net, 0.8);
  const auto x = torch::linspace(-1, 1, 21).unsqueeze(-1);
  const auto y = make_features(x.squeeze(-1)).matmul(w_target) + b_target;
  torch::optim::LBFGS solver(net->parameters(),
                             torch::optim::LBFGSOptions(1).max_iter(10).line_search_fn("strong_wolfe"));
  for (int i = 0; i < 4; ++i) {
    const auto before = solver.step([&] {
      solver.zero_grad();
      auto value = torch::mse_loss(net->forward(x), y);
      value.backward();
      return value;
    });
    std::printf("L-BFGS %d loss %.5f\n", i, before.item<double>());
  }
}
