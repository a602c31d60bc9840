// Cost of sizes that are symbols in a recorded training step (docs/compile.md): a small GPT over characters with AdamW,
// 4 blocks, 128 wide. usage: sizes [--threads N] [--steps N]
// Prints one JSON line:
//   fixed_step_ms, symbols_step_ms   median step of (12, 64) tokens, with fixed sizes and with symbols; they alternate
//   ratio                            of the two
//   nodes                            of the step's graph
//   record_us_per_node               the first call, less a later one: recording, passes and planning
//   plan_us_per_node                 a call at new sizes, less a later one there: median of several sizes
//   function_nodes                   of the loss as a compiled function, and of its backward
//   function_plan_us_per_node        a call and its backward at new sizes, less later ones there
// Recording and planning with a model that is 8 wide, whose memory costs nothing to touch for the first time.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <vector>

#include "benchmarks/common/line.h"
#include "benchmarks/common/program.h"
#include "examples/gpt.h"

namespace bench {
namespace {

namespace rg = retrograd;
using Clock = std::chrono::steady_clock;

double milliseconds(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return times[times.size() / 2];
}

// A model with its step.
class Training {
 public:
  using Step = std::function<rg::Tensor(const rg::Tensor&, const rg::Tensor&)>;

  Training(rg::DynamicSizes dynamic, int64_t width)
      : gpt_({.vocabulary = 65, .width = width}),
        step_(rg::compile_step(Step([this](const rg::Tensor& tokens, const rg::Tensor& next) {
                                 const rg::Tensor loss = gpt_.loss(tokens, next);
                                 loss.backward();
                                 optimizer_.step();
                                 optimizer_.zero_grad();
                                 return loss;
                               }),
                               {.dynamic = dynamic})) {}

  double step_ms(int64_t batch, int64_t length) {
    const rg::Tensor tokens = rg::randint(0, 65, {batch, length}, rg::kInt64);
    return milliseconds([&] { step_(tokens, tokens); });
  }
  int64_t nodes() const { return step_.stats().nodes; }

 private:
  examples::Gpt gpt_;
  rg::optim::AdamW optimizer_{gpt_.parameters(), {.lr = 1e-3}};
  rg::Compiled<Step> step_;
};

// A model whose loss is a compiled function.
class Loss {
 public:
  using Function = std::function<rg::Tensor(const rg::Tensor&, const rg::Tensor&)>;

  double call_ms(int64_t batch, int64_t length) {
    const rg::Tensor tokens = rg::randint(0, 65, {batch, length}, rg::kInt64);
    return milliseconds([&] {
      loss_(tokens, tokens).backward();
      gpt_.zero_grad();
    });
  }
  int64_t nodes() const {
    return std::ssize(loss_.graph()->nodes()) + std::ssize(loss_.backward_graph()->nodes());
  }

 private:
  examples::Gpt gpt_{{.vocabulary = 65, .width = 8}};
  rg::Compiled<Function> loss_ = rg::compile(
      Function([this](const rg::Tensor& tokens, const rg::Tensor& next) { return gpt_.loss(tokens, next); }),
      {.dynamic = rg::DynamicSizes::always});
};

// What a call at new sizes takes longer than later ones: median of several sizes. `call`: of a batch and a length.
double planning_ms(const std::function<double(int64_t, int64_t)>& call) {
  std::vector<double> planning;
  for (int64_t batch = 2; batch < 23; ++batch) {
    const double at_new_sizes = call(batch, 3 + batch);
    std::vector<double> again;
    for (int i = 0; i < 5; ++i) again.push_back(call(batch, 3 + batch));
    planning.push_back(at_new_sizes - median(again));
  }
  return median(planning);
}

void measure(int steps) {
  Training fixed(rg::DynamicSizes::never, 128), symbols(rg::DynamicSizes::always, 128);
  fixed.step_ms(12, 64), symbols.step_ms(12, 64);
  std::vector<double> fixed_ms, symbols_ms;
  for (int i = 0; i < steps; ++i) {
    fixed_ms.push_back(fixed.step_ms(12, 64));
    symbols_ms.push_back(symbols.step_ms(12, 64));
  }

  Training narrow(rg::DynamicSizes::always, 8);
  const double first = narrow.step_ms(2, 4), later = narrow.step_ms(2, 4);
  const double planning =
      planning_ms([&](int64_t batch, int64_t length) { return narrow.step_ms(batch, length); });
  Loss loss;
  loss.call_ms(2, 4);
  const double function_planning =
      planning_ms([&](int64_t batch, int64_t length) { return loss.call_ms(batch, length); });
  const auto per_node = [&](double ms) { return ms * 1e3 / static_cast<double>(symbols.nodes()); };
  const double with_fixed = median(fixed_ms), with_symbols = median(symbols_ms);
  Line()
      .text("bench", "sizes")
      .number("fixed_step_ms", with_fixed, 3)
      .number("symbols_step_ms", with_symbols, 3)
      .number("ratio", with_symbols / with_fixed, 3)
      .count("nodes", symbols.nodes())
      .number("record_us_per_node", per_node(first - later), 2)
      .number("plan_us_per_node", per_node(planning), 2)
      .count("function_nodes", loss.nodes())
      .number("function_plan_us_per_node", function_planning * 1e3 / static_cast<double>(loss.nodes()), 2)
      .print();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  CLI::App app("Cost of sizes that are symbols in a recorded step.", "sizes");
  int threads = 1, steps = 30;
  app.add_option("--threads", threads)->check(CLI::PositiveNumber);
  app.add_option("--steps", steps, "steps of each side")->check(CLI::PositiveNumber);
  return bench::run_program(app, argc, argv, [&](const bench::Place&) {
    retrograd::cpu::set_num_threads(threads);
    bench::measure(steps);
  });
}
