// A language model with an LSTM on sentences whose length changes from step to step: Embedding 64 -> 128, LSTM 128,
// Linear to 64, batch 16, AdamW 1e-3. The peer is peers/lstm.py. usage: lstm [--threads N] [--mode M] [--steps N]
// [--lengths N] [--shortest N]
//
// Lengths are 8, 10, ... (26 different ones unless given, in a fixed random order). Prints one JSON line:
//   step_ms    median step, without the first of each length
//   captures   recordings, of compile and step
//   plans_ms   median first step of a length, of compile and step: with planning
//   live_kb    tensor data alive after the first 100 steps, and growth_kb from there to the end
//   loss       of the last step
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "benchmarks/common/line.h"
#include "benchmarks/common/program.h"

namespace bench {
namespace {

namespace rg = retrograd;
namespace nn = retrograd::nn;
using Clock = std::chrono::steady_clock;

constexpr int64_t kTokens = 64, kWidth = 128, kBatch = 16;

struct Model : nn::Module {
  nn::Embedding embedding{this, "embedding", kTokens, kWidth};
  nn::LSTM lstm{this, "lstm", kWidth, kWidth, {.batch_first = true}};
  nn::Linear head{this, "head", kWidth, kTokens};

  rg::Tensor loss(const rg::Tensor& tokens, const rg::Tensor& next) {
    return rg::cross_entropy(rg::flatten(head(lstm(embedding(tokens)).output), 0, 1), rg::flatten(next));
  }
};

double median(std::vector<double> times) {
  if (times.empty()) return 0;
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return times[times.size() / 2];
}

using Step = std::function<rg::Tensor(const rg::Tensor&, const rg::Tensor&)>;

// One training run in one mode.
class Training {
 public:
  explicit Training(const std::string& mode) {
    const Step loss = [this](const rg::Tensor& tokens, const rg::Tensor& next) {
      return model_.loss(tokens, next);
    };
    if (mode == "compile") {
      compiled_.emplace(rg::compile(loss));
      step_ = [this](const rg::Tensor& tokens, const rg::Tensor& next) {
        return update((*compiled_)(tokens, next));
      };
      return;
    }
    step_ = [this, loss](const rg::Tensor& tokens, const rg::Tensor& next) {
      return update(loss(tokens, next));
    };
    if (mode != "step") return;
    compiled_.emplace(rg::compile_step(Step(step_)));
    step_ = [this](const rg::Tensor& tokens, const rg::Tensor& next) { return (*compiled_)(tokens, next); };
  }
  rg::Tensor run(const rg::Tensor& tokens, const rg::Tensor& next) { return step_(tokens, next); }
  int64_t captures() const { return compiled_ ? compiled_->stats().captures : 0; }

 private:
  rg::Tensor update(const rg::Tensor& loss) {
    loss.backward();
    optimizer_.step();
    optimizer_.zero_grad();
    return loss.detach();
  }

  Model model_;
  rg::optim::AdamW optimizer_{model_.parameters(), {.lr = 1e-3}};
  std::optional<rg::Compiled<Step>> compiled_;
  Step step_;
};

void measure(const std::string& mode, int steps, int lengths, int64_t shortest) {
  rg::manual_seed(0);
  Training training(mode);
  std::mt19937 order(1);
  std::set<int64_t> seen;
  std::vector<double> usual, first;
  double loss = 0;
  int64_t live = 0;
  for (int i = 0; i < steps; ++i) {
    const int64_t length = shortest + 2 * static_cast<int64_t>(order() % static_cast<unsigned>(lengths));
    const rg::Tensor tokens = rg::randint(0, kTokens, {kBatch, length}, rg::kInt64),
                     next = rg::randint(0, kTokens, {kBatch, length}, rg::kInt64);
    const auto begin = Clock::now();
    loss = training.run(tokens, next).item<double>();
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    (seen.insert(length).second ? first : usual).push_back(ms);
    if (i == std::min(steps - 1, 99)) live = rg::memory::stats().live_bytes;
  }
  Line()
      .text("bench", "lstm")
      .text("mode", mode)
      .count("lengths", lengths)
      .count("shortest", shortest)
      .number("step_ms", median(usual), 3)
      .count("captures", training.captures())
      .number("first_of_length_ms", median(first), 3)
      .number("live_kb", static_cast<double>(live) / 1024, 0)
      .number("growth_kb", static_cast<double>(rg::memory::stats().live_bytes - live) / 1024, 0)
      .number("loss", loss, 4)
      .print();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  CLI::App app("A language model with an LSTM on sentences of changing length.", "lstm");
  int threads = 2, steps = 120, lengths = 26;
  int64_t shortest = 8;
  std::string mode = "eager";
  app.add_option("--threads", threads)->check(CLI::PositiveNumber);
  app.add_option("--mode", mode)->check(CLI::IsMember({"eager", "compile", "step"}));
  app.add_option("--steps", steps)->check(CLI::PositiveNumber);
  app.add_option("--lengths", lengths, "different ones")->check(CLI::PositiveNumber);
  app.add_option("--shortest", shortest)->check(CLI::PositiveNumber);
  return bench::run_program(app, argc, argv, [&](const bench::Place&) {
    retrograd::cpu::set_num_threads(threads);
    bench::measure(mode, steps, lengths, shortest);
  });
}
