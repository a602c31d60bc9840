// Time of a training step: forward, backward, AdamW, zero_grad. The models are in train/. peers/train_steps.py and
// train_steps_jax.py do the same work in PyTorch and JAX, where zero_grad comes first. Here it comes last, so that no
// gradient outlives the step, and a plan may free each after its use.
//   train_step MODEL MODE [--threads N] [--steps N] [--batch B] [--block T] [--dtype fp32|bf16|autocast-bf16]
//                         [--device cpu|cuda] [--peak-tflops X]
//   MODEL  mlp, gpt-char, gpt-124m
//   MODE   eager     loss.backward()
//          traced    the backward through compile_backward()
//          compiled  the loss through compile(): forward and backward are plans
//          step      all of it through compile_step()
// One first step, three to warm up, then N steps, each waited for. With --dtype bf16 the model computes in bfloat16,
// and parameters, their gradients and AdamW's state stay float32 (train/models.h); with autocast-bf16 the float32 model
// runs under rg::autocast. The peer's counterpart of both is its own autocast.
// Prints one JSON line with the peer's figures and some more:
//   model, mode, threads, dtype
//   device            cpu, or the device's own name
//   step_ms, min_ms   median and least of the N steps
//   first_s           the first step, including capture or planning, and the first allocation of memory
//   first_step_ms     the same in milliseconds
//   tokens_per_s      predictions by the median
//   peak_bytes        of tensor data on the device, over all steps
//   planned_bytes     the peak that plans have predicted, in the warm-up steps; -1 without plans
//   loss              after the steps; the data are random, so it only shows that something is learnt
//   gemm_ms           the step's matrix products alone, each at the best rate of this run: a lower bound of the step
//                     with these kernels
//   tflops            multiplications and additions of these products, attention's as full squares, by the
//                     median; of all of a step
//   peak_tflops       of one large product in this dtype, measured in this run, or the value of --peak-tflops
//   share             tflops relative to peak_tflops
// The sides of a comparison must alternate on a shared machine.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/common/line.h"
#include "benchmarks/common/program.h"
#include "benchmarks/train/models.h"

namespace bench {
namespace {

struct Training {
  std::unique_ptr<Model> model;
  bool autocast = false;
  rg::optim::AdamW optimizer{model->parameters(), {.lr = 3e-4}};

  rg::Tensor loss() const {
    const rg::autocast scope(rg::kBFloat16, {.enabled = autocast});
    return model->loss();
  }
};

/// A step, which returns its loss.
using Step = std::function<rg::Tensor()>;

Step eager(Training& training) {
  return [&training] {
    const rg::Tensor loss = training.loss();
    loss.backward();
    training.optimizer.step();
    training.optimizer.zero_grad();
    return loss;
  };
}

Step traced(Training& training) {
  return [&training, backward = std::make_shared<rg::CompiledBackward>()] {
    const rg::Tensor loss = training.loss();
    (*backward)(loss);
    training.optimizer.step();
    training.optimizer.zero_grad();
    return loss;
  };
}

Step compiled(Training& training) {
  auto loss = rg::compile([&training] { return training.loss(); });
  return [&training, loss = std::make_shared<decltype(loss)>(std::move(loss))] {
    const rg::Tensor value = (*loss)();
    value.backward();
    training.optimizer.step();
    training.optimizer.zero_grad();
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
  std::string model, mode, dtype = "fp32";
  int threads = 2;
  int steps = 30;
  double peak_tflops = 0;  // 0: to be measured
  BatchSize size;
  bool autocast() const { return dtype == "autocast-bf16"; }
  /// Of the model, and of its matrix products.
  rg::ScalarType model_dtype() const { return dtype == "bf16" ? rg::kBFloat16 : rg::kFloat32; }
  rg::ScalarType product_dtype() const { return autocast() ? rg::kBFloat16 : model_dtype(); }
};

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct Times {
  double first, median, least;
  int64_t peak_bytes, planned_bytes;
  double loss;
};

Times run(const Options& options, const Place& place, const Step& step) {
  rg::Tensor loss;
  const auto one = [&] { loss = step(); };
  place.reset_peak();
  Times times{};
  times.first = seconds_of(place, one);
  {
    const rg::PeakMeter watch;
    for (int i = 0; i < 3; ++i) {
      one();
      place.settle();
    }
    times.planned_bytes = watch.report().runs > 0 ? watch.report().planned_bytes : -1;
  }
  std::vector<double> seconds;
  for (int i = 0; i < options.steps; ++i) seconds.push_back(seconds_of(place, one));
  std::ranges::sort(seconds);
  times.median = seconds[seconds.size() / 2];
  times.least = seconds[0];
  times.peak_bytes = place.peak_bytes();
  times.loss = loss.item<double>();
  return times;
}

// The machine's limits, to compare a step with. Unknown if measuring them failed; the time of the step is printed
// nevertheless.
struct Limits {
  double peak_tflops = kUnknown, products_ms = kUnknown;
};

Limits limits_of(const Options& options, const Place& place, const Model& model) {
  Limits limits;
  const rg::ScalarType dtype = options.product_dtype();
  if (options.peak_tflops > 0) limits.peak_tflops = options.peak_tflops;
  try {
    if (options.peak_tflops <= 0) limits.peak_tflops = peak_flops(place, dtype) * 1e-12;
    limits.products_ms = best_seconds(model.products(), place, dtype) * 1e3;
  } catch (const rg::Exception& e) {
    std::fprintf(stderr, "train_step: products alone: %s\n", e.what());
  }
  return limits;
}

void print(const Options& options, const Place& place, const Model& model, const Times& times) {
  const Limits limits = limits_of(options, place, model);
  const double tflops = flops_of(model.products()) / times.median * 1e-12;
  Line()
      .text("model", options.model)
      .text("mode", options.mode)
      .count("threads", options.threads)
      .text("dtype", options.dtype)
      .text("device", place.name())
      .number("step_ms", times.median * 1e3, 3)
      .number("min_ms", times.least * 1e3, 3)
      .number("first_s", times.first, 3)
      .number("tokens_per_s", static_cast<double>(model.tokens()) / times.median, 0)
      .count("peak_bytes", times.peak_bytes)
      .count("planned_bytes", times.planned_bytes)
      .number("loss", times.loss, 4)
      .number("gemm_ms", limits.products_ms, 3)
      .number("first_step_ms", times.first * 1e3, 3)
      .number("tflops", tflops, 3)
      .number("peak_tflops", limits.peak_tflops, 3)
      .number("share", tflops / limits.peak_tflops, 3)
      .print();
}

void measure(const Options& options, const Place& place) {
  rg::cpu::set_num_threads(options.threads);
  rg::manual_seed(0);
  Training training{make_model(options.model, options.size, options.model_dtype(), place.device()),
                    options.autocast()};
  const Model& model = *training.model;
  const auto mode = std::ranges::find(modes(), options.mode, &Mode::name);
  const Times times = run(options, place, mode->make(training));
  print(options, place, model, times);
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
  app.add_option("--dtype", options.dtype, "what the model computes in")
      ->check(CLI::IsMember({"fp32", "bf16", "autocast-bf16"}));
  app.add_option("--peak-tflops", options.peak_tflops,
                 "the machine's, where it is known better than measured")
      ->check(CLI::PositiveNumber);
  return bench::run_program(app, argc, argv,
                            [&](const bench::Place& place) { bench::measure(options, place); });
}
