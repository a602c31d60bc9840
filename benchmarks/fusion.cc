// Memory-bound work, as in peers/fusion.py: a pointwise loss over 2^22 float32 values, forward and backward,
// and a step of AdamW over as many parameters in four tensors. Both stand beside a copy of an array of that
// size, which is what memory allows.
//   fusion [--threads N]
// Prints JSON lines, times in milliseconds, medians of 15 runs:
//   bench fusion  elements, eager_ms, traced_ms (the backward through compile_backward()), traced_first_s,
//                 compiled_ms (the loss through compile()), step_ms (loss and backward in one compile_step()),
//                 step_first_s, copy_ms
//   bench adamw   mode, elements, step_ms, copy_ms
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

constexpr int64_t kElements = 1 << 22;
constexpr int kRuns = 15;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median_ms(const std::function<void()>& work) {
  for (int i = 0; i < 2; ++i) work();
  std::vector<double> times;
  for (int i = 0; i < kRuns; ++i) times.push_back(seconds_of(work));
  std::ranges::sort(times);
  return times[kRuns / 2] * 1e3;
}

Tensor pointwise_loss(const Tensor& x, const Tensor& w) {
  return rg::mean(rg::square(rg::tanh(x * w + 0.5) * rg::sigmoid(x) - rg::exp(-x * x) * 0.1));
}

double measure_copy() {
  rg::NoGradGuard no_grad;
  const Tensor from = rg::randn({kElements}), to = rg::empty({kElements});
  return median_ms([&] { to.copy_(from); });
}

void measure_fusion(double copy_ms) {
  const Tensor x = rg::randn({kElements}).requires_grad_(), w = rg::randn({kElements});
  const auto step = [&](const std::function<void(const Tensor&)>& backward) {
    x.set_grad({});
    const Tensor loss = pointwise_loss(x, w);
    backward(loss);
    return loss;
  };
  const double eager = median_ms([&] { step([](const Tensor& loss) { loss.backward(); }); });
  rg::CompiledBackward backward = rg::compile_backward();
  const auto traced_step = [&] { step([&](const Tensor& loss) { backward(loss); }); };
  const double first = seconds_of(traced_step), traced = median_ms(traced_step);
  auto compiled_loss = rg::compile(pointwise_loss);
  const double compiled = median_ms([&] {
    x.set_grad({});
    compiled_loss(x, w).backward();
  });
  auto compiled_step = rg::compile_step([&] { return step([](const Tensor& loss) { loss.backward(); }); });
  const auto whole_step = [&] { compiled_step(); };
  const double step_first = seconds_of(whole_step), whole = median_ms(whole_step);
  std::printf(
      "{\"bench\":\"fusion\",\"elements\":%lld,\"copy_ms\":%.3f,\"eager_ms\":%.3f,\"traced_ms\":%.3f,"
      "\"traced_first_s\":%.2f,\"compiled_ms\":%.3f,\"step_ms\":%.3f,\"step_first_s\":%.3f}\n",
      static_cast<long long>(kElements), copy_ms, eager, traced, first, compiled, whole, step_first);
}

void measure_adamw(double copy_ms) {
  rg::Tensors parameters;
  for (int i = 0; i < 4; ++i) {
    parameters.push_back(rg::randn({kElements / 4}).requires_grad_());
    parameters.back().set_grad(rg::randn({kElements / 4}));
  }
  rg::optim::AdamW optimizer(parameters, {.lr = 1e-3});
  const auto measure = [&](const char* mode, const std::function<void()>& step) {
    std::printf("{\"bench\":\"adamw\",\"mode\":\"%s\",\"elements\":%lld,\"step_ms\":%.3f,\"copy_ms\":%.3f}\n",
                mode, static_cast<long long>(kElements), median_ms(step), copy_ms);
  };
  measure("eager", [&] { optimizer.step(); });
  auto compiled_step = rg::compile_step([&] { optimizer.step(); });
  measure("step", [&] { compiled_step(); });
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 2;
  CLI::App app("A pointwise loss and a step of AdamW beside a copy");
  app.add_option("--threads", threads, "threads to compute with")->check(CLI::Range(1, 1024));
  CLI11_PARSE(app, argc, argv);
  rg::cpu::set_num_threads(threads);
  rg::manual_seed(0);
  const double copy_ms = measure_copy();
  measure_fusion(copy_ms);
  measure_adamw(copy_ms);
}
