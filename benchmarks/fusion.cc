// Memory-bound work, as in peers/fusion.py: a pointwise loss, forward and backward, a chain of elementwise ops, and a
// step of AdamW. All are compared with a copy of an array of the same size, which is the limit of the memory.
//   fusion [--threads N] [--device cpu|cuda] [--elements N]
// By default 2^22 float32 values, on a device 2^26, which exceed all caches. Prints JSON lines, times in milliseconds,
// medians of 15 runs (common/place.h). All have bench, device, elements, copy_ms and
//   share         the rate of the bytes that must be read and written once, relative to that of the copy; more than 1
//                 when a cache holds more of them than of the copy
//   bench fusion  eager_ms, traced_ms (the backward through compile_backward()), traced_first_s, compiled_ms (the loss
//                 through compile()), step_ms (loss and backward in one compile_step()), step_first_s; share is that of
//                 step_ms: two arrays are read, one is written
//   bench chain   mode eager or compiled, step_ms: x w + 0.5, times x, less w; two arrays are read, one is written
//   bench adamw   mode, step_ms: four arrays are read, three are written
#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "benchmarks/common/line.h"
#include "benchmarks/common/program.h"

namespace rg = retrograd;
using rg::Tensor;

namespace bench {
namespace {

constexpr int kRuns = 15;

Tensor pointwise_loss(const Tensor& x, const Tensor& w) {
  return rg::mean(rg::square(rg::tanh(x * w + 0.5) * rg::sigmoid(x) - rg::exp(-x * x) * 0.1));
}

Tensor chain(const Tensor& x, const Tensor& w) { return (x * w + 0.5) * x - w; }

class Benchmark {
 public:
  Benchmark(const Place& place, int64_t elements)
      : place_(place), elements_(elements), copy_rate_(copy_rate(place, elements)) {}

  void fusion() const {
    const Tensor x = numbers(elements_).requires_grad_(), w = numbers(elements_);
    const auto step = [&](const std::function<void(const Tensor&)>& backward) {
      x.set_grad({});
      const Tensor loss = pointwise_loss(x, w);
      backward(loss);
      return loss;
    };
    const auto by_tape = [](const Tensor& loss) { loss.backward(); };
    rg::CompiledBackward backward = rg::compile_backward();
    const auto traced_step = [&] { step([&](const Tensor& loss) { backward(loss); }); };
    auto compiled_loss = rg::compile(pointwise_loss);
    auto compiled_step = rg::compile_step([&] { return step(by_tape); });
    const auto whole_step = [&] { compiled_step(); };
    const double eager = median_ms([&] { step(by_tape); });
    const double first = seconds_of(place_, traced_step), traced = median_ms(traced_step);
    const double compiled = median_ms([&] {
      x.set_grad({});
      compiled_loss(x, w).backward();
    });
    const double step_first = seconds_of(place_, whole_step), whole = median_ms(whole_step);
    line("fusion", 3, whole)
        .number("eager_ms", eager, 3)
        .number("traced_ms", traced, 3)
        .number("traced_first_s", first, 2)
        .number("compiled_ms", compiled, 3)
        .number("step_ms", whole, 3)
        .number("step_first_s", step_first, 3)
        .print();
  }

  void chains() const {
    const rg::NoGradGuard no_grad;
    const Tensor x = numbers(elements_), w = numbers(elements_);
    const auto measure = [&](const char* mode, const std::function<void()>& run) {
      const double ms = median_ms(run);
      line("chain", 3, ms).text("mode", mode).number("step_ms", ms, 3).print();
    };
    auto compiled = rg::compile(chain);
    measure("eager", [&] { chain(x, w); });
    measure("compiled", [&] { compiled(x, w); });
  }

  void adamw() const {
    rg::Tensors parameters;
    for (int i = 0; i < 4; ++i) {
      parameters.push_back(numbers(elements_ / 4).requires_grad_());
      parameters.back().set_grad(numbers(elements_ / 4));
    }
    rg::optim::AdamW optimizer(parameters, {.lr = 1e-3});
    const auto measure = [&](const char* mode, const std::function<void()>& run) {
      const double ms = median_ms(run);
      line("adamw", 7, ms).text("mode", mode).number("step_ms", ms, 3).print();
    };
    measure("eager", [&] { optimizer.step(); });
    auto compiled_step = rg::compile_step([&] { optimizer.step(); });
    measure("step", [&] { compiled_step(); });
  }

 private:
  Tensor numbers(int64_t elements) const { return rg::randn({elements}, {rg::kFloat32, place_.device()}); }
  double median_ms(const std::function<void()>& run) const {
    return median_seconds(place_, run, kRuns) * 1e3;
  }
  // `arrays`: the number of arrays that must be read or written once, in `ms`.
  Line line(const char* name, int arrays, double ms) const {
    const double bytes = static_cast<double>(elements_) * sizeof(float);
    Line line;
    line.text("bench", name)
        .text("device", place_.name())
        .count("elements", elements_)
        .number("copy_ms", 2 * bytes / copy_rate_ * 1e3, 3)
        .number("share", arrays * bytes / (ms * 1e-3) / copy_rate_, 3);
    return line;
  }

  const Place& place_;
  const int64_t elements_;
  const double copy_rate_;
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  int threads = 2;
  int64_t elements = 0;
  CLI::App app("A pointwise loss, a chain and a step of AdamW compared with a copy");
  app.add_option("--threads", threads, "threads to compute with")->check(CLI::Range(1, 1024));
  app.add_option("--elements", elements, "of an array")->check(CLI::Range(int64_t{4}, int64_t{1} << 32));
  return bench::run_program(app, argc, argv, [&](const bench::Place& place) {
    rg::cpu::set_num_threads(threads);
    rg::manual_seed(0);
    if (elements == 0) elements = int64_t{1} << (place.is_cpu() ? 22 : 26);
    const bench::Benchmark benchmark(place, elements);
    benchmark.fusion();
    benchmark.chains();
    benchmark.adamw();
  });
}
