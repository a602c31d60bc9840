// A line through points: torch::nn::Linear, the mean squared error and stochastic gradient descent.
#include <torch/torch.h>

#include <iomanip>
#include <iostream>

#include "weights.h"

int main() {
  std::cout << std::fixed << std::setprecision(6);
  torch::manual_seed(1);
  torch::Device device(torch::kCPU);
  if (torch::cuda::is_available()) std::cout << "a GPU would do, too\n";

  // Fifteen points around y = 1.7 x + 0.4.
  const auto x_train = torch::linspace(-1.5, 1.5, 15, torch::kFloat).reshape({15, 1}).to(device);
  const auto y_train = x_train.mul(1.7).add(0.4) + 0.05 * waves({15, 1}, 2.3);

  torch::nn::Linear model(torch::nn::LinearOptions(1, 1).bias(true));
  model->to(device);
  fill_parameters(*model);

  const double learning_rate = 0.05;
  const size_t num_epochs = 60;
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(learning_rate));

  for (size_t epoch = 0; epoch != num_epochs; ++epoch) {
    auto output = model->forward(x_train);
    auto loss = torch::nn::functional::mse_loss(output, y_train);

    optimizer.zero_grad();
    loss.backward();
    optimizer.step();

    if ((epoch + 1) % 10 == 0)
      std::cout << "Epoch [" << (epoch + 1) << "/" << num_epochs << "], Loss: " << loss.item<double>()
                << "\n";
  }

  model->eval();
  torch::NoGradGuard no_grad;
  const auto slope = model->weight.item<float>();
  const auto offset = model->bias[0].item<float>();
  std::cout << "y = " << slope << " x + " << offset << "\n";

  // The same line by least squares, from the normal equations.
  const auto design = torch::cat({x_train, torch::ones_like(x_train)}, /*dim=*/1);
  const auto best = torch::inverse(design.t().matmul(design)).matmul(design.t()).matmul(y_train);
  std::cout << "least squares: " << best[0][0].item<float>() << " " << best.index({1, 0}).item<float>()
            << "\n";

  // Logistic regression on the sign of x, with a weight decay and a momentum.
  torch::nn::Sequential classifier(torch::nn::Linear(1, 1), torch::nn::Sigmoid());
  fill_parameters(*classifier);
  torch::AutoGradMode with_gradients(true);
  torch::optim::SGD sgd(classifier->parameters(),
                        torch::optim::SGDOptions(0.5).momentum(0.9).weight_decay(1e-3).nesterov(true));
  const auto labels = x_train.gt(0).to(torch::kFloat);
  torch::nn::BCELoss criterion;
  for (int step = 1; step <= 20; ++step) {
    sgd.zero_grad();
    auto loss = criterion(classifier->forward(x_train), labels);
    loss.backward();
    sgd.step();
    if (step % 5 == 0) std::cout << "step " << step << " loss " << loss.item<float>() << "\n";
  }
  const auto right = classifier->forward(x_train).gt(0.5).eq(labels > 0.5).sum().item<int64_t>();
  std::cout << right << " of " << labels.size(0) << " right\n";
}
