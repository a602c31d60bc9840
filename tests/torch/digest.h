// For tests that are programs in libtorch's way. Their numbers are those of libtorch 2.15, by which these files compile
// and pass, too: beside torch:: they use only what is here.
#pragma once

#include <retrograd/torch.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace digest {

/// Floats of a shape that differ from each other, in (-1, 1).
inline torch::Tensor wave(std::vector<int64_t> sizes, double step = 0.7) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return torch::sin(torch::arange(count).to(torch::kFloat) * step).reshape(sizes);
}

/// One number that depends on every element and its place; the element itself if there is only one.
inline double of(const torch::Tensor& x) {
  const torch::Tensor flat = x.detach().to(torch::kFloat).reshape({-1});
  if (flat.numel() == 1) return flat.item<float>();
  return (flat * wave({flat.numel()}, 1.3)).sum().item<float>();
}

/// Gives all parameters the values of a wave.
inline void fill(torch::nn::Module& module) {
  torch::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) {
    std::vector<int64_t> sizes;
    for (const int64_t size : parameter.sizes()) sizes.push_back(size);
    parameter.copy_(wave(sizes, 0.9));
  }
}

/// That of the gradients of all parameters.
inline double of_gradients(const torch::nn::Module& module) {
  double sum = 0, weight = 1;
  for (const auto& parameter : module.parameters()) sum += (weight += 0.5) * of(parameter.grad());
  return sum;
}

/// Checks that `got` is `expected`. With the variable DIGESTS set it prints `got`: so libtorch's numbers are taken.
inline void expect(double got, double expected, int line = __builtin_LINE()) {
  if (std::getenv("DIGESTS")) {
    std::printf("%d %.7g\n", line, got);
    return;
  }
  INFO("line " << line);
  CHECK(got == Approx(expected).epsilon(1e-4).margin(2e-5));
}

}  // namespace digest
