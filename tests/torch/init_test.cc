// torch::nn::init and torch::nn::utils.
#include "tests/torch/digest.h"

namespace nn = torch::nn;
using digest::expect, digest::wave;

TEST_CASE("Initial values") {
  torch::Tensor w = torch::empty({40, 30});
  CHECK(nn::init::constant_(w, 0.3).mean().item<float>() == Approx(0.3));
  CHECK(nn::init::ones_(w).sum().item<float>() == 1200);
  CHECK(nn::init::zeros_(w).sum().item<float>() == 0);
  CHECK(nn::init::eye_(w).sum().item<float>() == 30);
  nn::init::normal_(w, 1.0, 0.1);
  CHECK(w.mean().item<float>() == Approx(1).margin(0.02));
  nn::init::uniform_(w, -2, 3);
  CHECK(w.min().item<float>() >= -2);
  CHECK(w.max().item<float>() > 2.5f);
  nn::init::xavier_uniform_(w, 2.0);
  CHECK(w.abs().max().item<float>() <= 2 * std::sqrt(6.0 / 70));
  nn::init::xavier_normal_(w);
  CHECK(w.std().item<float>() == Approx(std::sqrt(2.0 / 70)).epsilon(0.15));
  nn::init::kaiming_uniform_(w, /*a=*/0, torch::kFanOut, torch::kReLU);
  CHECK(w.abs().max().item<float>() <= std::sqrt(6.0 / 40));
  nn::init::kaiming_normal_(w, 0.2, torch::kFanIn, torch::kLeakyReLU);
  CHECK(w.std().item<float>() == Approx(std::sqrt(2.0 / 1.04 / 30)).epsilon(0.15));
  nn::init::orthogonal_(w);
  CHECK(torch::mm(w.t(), w).sub(torch::eye(30)).abs().max().item<float>() < 1e-4);
  torch::Tensor kernel = torch::empty({2, 2, 3});
  expect(digest::of(nn::init::dirac_(kernel)), 1.383725);
  nn::init::sparse_(w, 0.25);
  CHECK((w == 0).to(torch::kFloat).sum().item<float>() == 300);
  CHECK(nn::init::calculate_gain(torch::kTanh) == Approx(5.0 / 3));
  CHECK(nn::init::calculate_gain(torch::kLeakyReLU, 0.5) == Approx(std::sqrt(2 / 1.25)));
}

TEST_CASE("Utilities of parameters and gradients") {
  nn::Linear fc(3, 2);
  digest::fill(*fc);
  const torch::Tensor all = nn::utils::parameters_to_vector(fc->parameters());
  CHECK(all.numel() == 8);
  expect(digest::of(all), 1.393483);
  nn::utils::vector_to_parameters(torch::ones({8}), fc->parameters());
  CHECK(fc->weight.sum().item<float>() == 6);
  fc(wave({4, 3})).pow(2).sum().backward();
  const double norm = nn::utils::clip_grad_norm_(fc->parameters(), 0.5);
  expect(norm, 28.48599);
  CHECK(nn::utils::clip_grad_norm_(fc->parameters(), 100.0) == Approx(0.5));
  nn::utils::clip_grad_value_(fc->parameters(), 0.1);
  CHECK(fc->weight.grad().abs().max().item<float>() <= 0.1f);
  nn::utils::clip_grad_value_(fc->weight, 0.05);
  CHECK(fc->weight.grad().abs().max().item<float>() <= 0.05f);
  nn::utils::clip_grad_norm_(fc->weight, 0.01);
  CHECK(fc->weight.grad().norm().item<double>() <= 0.0101);
}
