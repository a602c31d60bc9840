// Initial weights from a formula: every library, and every run, starts training from the same numbers.
#pragma once

#include <torch/torch.h>

#include <cmath>

/// Fills the k-th parameter of a module with scale * sin(0.7 i + k) for its element i.
inline void fill_parameters(torch::nn::Module& module, double scale = 0.3) {
  torch::NoGradGuard no_grad;
  double phase = 0;
  for (auto& entry : module.named_parameters()) {
    torch::Tensor& parameter = entry.value();
    const auto index = torch::arange(parameter.numel(), torch::kFloat64);
    parameter.copy_(torch::sin(index * 0.7 + phase).mul(scale).view(parameter.sizes()));
    phase += 1;
  }
}

/// A float32 tensor of these sizes with values between -1 and 1, from the same formula.
inline torch::Tensor waves(torch::IntArrayRef sizes, double frequency, double phase = 0) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return torch::sin(torch::arange(count, torch::kFloat64) * frequency + phase)
      .to(torch::kFloat32)
      .view(sizes);
}
