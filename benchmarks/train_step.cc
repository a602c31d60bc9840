// Time of a training step: zero_grad, forward, backward, AdamW. The models are in train/, the same work for
// PyTorch and JAX in peers/train_steps.py and train_steps_jax.py.
//   train_step MODEL MODE [--threads N] [--steps N] [--batch B] [--block T]
//   MODEL  mlp, gpt-char, gpt-124m
//   MODE   eager     loss.backward()
//          traced    the backward through compile_backward()
//          compiled  the loss through compile(): forward and backward are plans
//          step      all of it through compile_step()
// One first step, three to warm up, then N steps. Prints one JSON line, the peer's and two figures more:
//   model, mode, threads
//   step_ms, min_ms  median and least of the N steps
//   first_s          the first step: what is captured or planned, and memory that is asked for the first time
//   first_step_ms    the same in milliseconds
//   tokens_per_s     predictions by the median
//   peak_bytes       of tensor data, over all steps
//   loss             after the steps; the data are random, so it only says that something is learnt
//   gemm_ms          the step's matrix products alone, each at the best rate seen in this run: what a step
//                    cannot do without on these kernels
// The sides of a comparison must alternate on a shared machine.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/train/models.h"

namespace bench {
namespace {

struct Training {
  std::unique_ptr<Model> model;
  rg::optim::AdamW optimizer{model->parameters(), {.lr = 3e-4}};
};

/// A step, which returns its loss.
using Step = std::function<rg::Tensor()>;

Step eager(Training& training) {
  return [&training] {
    training.optimizer.zero_grad();
    const rg::Tensor loss = training.model->loss();
    loss.backward();
    training.optimizer.step();
    return loss;
  };
}

Step traced(Training& training) {
  return [&training, backward = std::make_shared<rg::CompiledBackward>()] {
    training.optimizer.zero_grad();
    const rg::Tensor loss = training.model->loss();
    (*backward)(loss);
    training.optimizer.step();
    return loss;
  };
}

Step compiled(Training& training) {
  auto loss = rg::compile([&training] { return training.model->loss(); });
  return [&training, loss = std::make_shared<decltype(loss)>(std::move(loss))] {
    training.optimizer.zero_grad();
    const rg::Tensor value = (*loss)();
    value.backward();
    training.optimizer.step();
    return value;
  };
}

Step step(Training& training) {
  auto compiled = rg::compile_step([run = eager(training)] { return run(); });
  return [step = std::make_shared<decltype(compiled)>(std::move(compiled))] { return (*step)(); };
}

struct Mode {
  std::string name;
  Step (*make)(Training&);
};

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all{
      {"eager", eager}, {"traced", traced}, {"compiled", compiled}, {"step", step}};
  return all;
}

struct Options {
  std::string model, mode;
  int threads = 2;
  int steps = 30;
  BatchSize size;
};

double seconds_of(const Step& step, rg::Tensor& loss) {
  const auto begin = std::chrono::steady_clock::now();
  loss = step();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void measure(const Options& options) {
  rg::cpu::set_num_threads(options.threads);
  rg::manual_seed(0);
  Training training{make_model(options.model, options.size)};
  const auto mode = std::ranges::find(modes(), options.mode, &Mode::name);
  const Step step = mode->make(training);
  rg::Tensor loss;
  const double first = seconds_of(step, loss);
  for (int i = 0; i < 3; ++i) step();
  std::vector<double> times;
  for (int i = 0; i < options.steps; ++i) times.push_back(seconds_of(step, loss));
  std::ranges::sort(times);
  const double median = times[times.size() / 2];
  const auto peak = static_cast<long long>(rg::memory::stats().peak_bytes);
  std::printf(
      "{\"model\":\"%s\",\"mode\":\"%s\",\"threads\":%d,\"step_ms\":%.3f,\"min_ms\":%.3f,\"first_s\":%.3f,"
      "\"tokens_per_s\":%.0f,\"peak_bytes\":%lld,\"loss\":%.4f,\"gemm_ms\":%.3f,\"first_step_ms\":%.3f}\n",
      options.model.c_str(), options.mode.c_str(), options.threads, median * 1e3, times[0] * 1e3, first,
      static_cast<double>(training.model->tokens()) / median, peak, loss.item<double>(),
      best_seconds(training.model->products()) * 1e3, first * 1e3);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Options options;
  std::vector<std::string> modes;
  for (const bench::Mode& mode : bench::modes()) modes.push_back(mode.name);
  CLI::App app("Time of a training step");
  app.add_option("model", options.model, "what is trained")
      ->required()
      ->check(CLI::IsMember(bench::model_names()));
  app.add_option("mode", options.mode, "how a step runs")->required()->check(CLI::IsMember(modes));
  app.add_option("--threads", options.threads, "threads to compute with")->check(CLI::Range(1, 1024));
  app.add_option("--steps", options.steps, "steps to take the median of")->check(CLI::PositiveNumber);
  app.add_option("--batch", options.size.batch, "sequences or images of a step")->check(CLI::PositiveNumber);
  app.add_option("--block", options.size.block, "tokens of a sequence")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  bench::measure(options);
}
