// A gradient for each sample of a batch: a convolutional network for pictures of 3 x 32 x 32, batch 64, by
// vmap(func::grad). The peer is peers/per_sample_gradients.py (torch.func). usage: per_sample_gradients [--threads N]
// [--mode M] [--batch N] [--steps N]
//
// Modes: eager; compile: a recorded function; loop: func::grad of one sample after the other. Prints one JSON line:
//   step_ms   median, without the first three
//   norm      of all gradients together, of the last step
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "benchmarks/common/line.h"
#include "benchmarks/common/program.h"

namespace bench {
namespace {

namespace rg = retrograd;
namespace nn = retrograd::nn;
namespace func = retrograd::func;
using Clock = std::chrono::steady_clock;

struct Model : nn::Module {
  nn::Conv2d conv1{this, "conv1", 3, 32, 3, {.padding = 1}};
  nn::Conv2d conv2{this, "conv2", 32, 64, 3, {.padding = 1}};
  nn::Conv2d conv3{this, "conv3", 64, 64, 3, {.padding = 1}};
  nn::Linear fc{this, "fc", 64 * 4 * 4, 10};

  rg::Tensor forward(const rg::Tensor& x) const {
    rg::Tensor y = rg::max_pool2d(rg::relu(conv1(x)), 2);
    y = rg::max_pool2d(rg::relu(conv2(y)), 2);
    y = rg::max_pool2d(rg::relu(conv3(y)), 2);
    return fc(rg::flatten(y, 1));
  }
};

using Gradients = std::function<rg::Tensors(const rg::Tensors&, const rg::Tensor&, const rg::Tensor&)>;

Gradients gradients_of(const Model& model, const std::string& mode) {
  const auto loss = [&model](const rg::Tensors& parameters, const rg::Tensor& x, const rg::Tensor& target) {
    const rg::Tensor scores = func::functional_call(model, parameters, rg::unsqueeze(x, 0));
    return rg::cross_entropy(scores, rg::unsqueeze(target, 0));
  };
  const auto gradient = func::grad(loss);
  if (mode == "loop")
    return [gradient](const rg::Tensors& parameters, const rg::Tensor& x, const rg::Tensor& target) {
      std::vector<rg::Tensors> each(parameters.size());
      for (int64_t k = 0; k < x.size(0); ++k) {
        const rg::Tensors one = gradient(parameters, x[k], target[k]);
        for (size_t i = 0; i < one.size(); ++i) each[i].push_back(one[i]);
      }
      rg::Tensors all;
      for (const rg::Tensors& of_parameter : each) all.push_back(rg::stack(of_parameter));
      return all;
    };
  const Gradients mapped = rg::vmap(gradient, {std::nullopt, 0, 0});
  if (mode == "eager") return mapped;
  return rg::compile(mapped);
}

void measure(const std::string& mode, int64_t batch, int steps) {
  rg::manual_seed(0);
  const Model model;
  rg::Tensors parameters;
  for (const rg::Tensor& p : model.parameters()) parameters.push_back(p.detach());
  const rg::Tensor x = rg::randn({batch, 3, 32, 32}), target = rg::randint(0, 10, {batch}, rg::kInt64);
  const Gradients gradients = gradients_of(model, mode);
  std::vector<double> times;
  double squares = 0;
  for (int i = 0; i < steps; ++i) {
    const auto begin = Clock::now();
    const rg::Tensors all = gradients(parameters, x, target);
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    if (i >= 3) times.push_back(ms);
    squares = 0;
    for (const rg::Tensor& g : all) squares += rg::sum(rg::square(g)).item<double>();
  }
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  Line()
      .text("bench", "per_sample_gradients")
      .text("mode", mode)
      .count("batch", batch)
      .number("step_ms", times[times.size() / 2], 3)
      .number("norm", std::sqrt(squares), 4)
      .print();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  CLI::App app("A gradient for each sample of a batch.", "per_sample_gradients");
  int threads = 2, steps = 15;
  int64_t batch = 64;
  std::string mode = "eager";
  app.add_option("--threads", threads)->check(CLI::PositiveNumber);
  app.add_option("--mode", mode)->check(CLI::IsMember({"eager", "compile", "loop"}));
  app.add_option("--batch", batch)->check(CLI::PositiveNumber);
  app.add_option("--steps", steps, "at least 4")->check(CLI::Range(4, 1000000));
  return bench::run_program(app, argc, argv, [&](const bench::Place&) {
    retrograd::cpu::set_num_threads(threads);
    bench::measure(mode, batch, steps);
  });
}
