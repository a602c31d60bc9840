// One step of each optimizer, as peers/optimizers.py: over one tensor of 2^22 floats ("flat") and over 148 tensors
// with the shapes of a small GPT ("gpt").
//   optimizers [--threads N] [--device cpu|cuda] [--names adam,muon,...]
// Prints JSON lines: name, over, mode (eager, or step: recorded by compile_step), tensors, numbers, step_ms (a median),
// copy_ms (a copy of as many floats), and share: the rate of the bytes that the step reads and writes once, relative to
// that of the copy.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <string>

#include "benchmarks/common/line.h"
#include "benchmarks/common/program.h"

namespace rg = retrograd;
using rg::Tensor;

namespace bench {
namespace {

constexpr int kRuns = 25;

std::vector<rg::IntArray> shapes_of(const std::string& over) {
  if (over == "flat") return {{1 << 22}};
  std::vector<rg::IntArray> all;
  for (int layer = 0; layer < 12; ++layer)
    for (const rg::IntArray& shape : {rg::IntArray{256, 768},
                                      {256},
                                      {256, 256},
                                      {256},
                                      {256},
                                      {256},
                                      {1024, 256},
                                      {1024},
                                      {256, 1024},
                                      {256},
                                      {256},
                                      {256}})
      all.push_back(shape);
  for (const rg::IntArray& shape : {rg::IntArray{512, 256}, {128, 256}, {256}, {256}}) all.push_back(shape);
  return all;
}

struct Entry {
  std::string name;
  /// Arrays of the parameters' size that a step reads and writes; 0: the share is not printed.
  int arrays;
  std::function<std::unique_ptr<rg::optim::Optimizer>(const rg::Tensors&)> make;
  bool only_matrices = false;
};

template <class Optimizer>
Entry entry(std::string name, int arrays, typename Optimizer::Options options = {}) {
  return {std::move(name), arrays,
          [options](const rg::Tensors& params) -> std::unique_ptr<rg::optim::Optimizer> {
            return std::make_unique<Optimizer>(params, options);
          }};
}

Entry matrices_only(Entry entry) {
  entry.only_matrices = true;
  return entry;
}

std::vector<Entry> entries() {
  namespace optim = rg::optim;
  return {entry<optim::SGD>("sgd", 5, {.momentum = 0.9}),
          entry<optim::Adam>("adam", 7),
          entry<optim::AdamW>("adamw", 7),
          entry<optim::Adamax>("adamax", 7),
          entry<optim::NAdam>("nadam", 7),
          entry<optim::RAdam>("radam", 7),
          entry<optim::Adagrad>("adagrad", 5),
          entry<optim::Adadelta>("adadelta", 7),
          entry<optim::RMSprop>("rmsprop", 5),
          entry<optim::Rprop>("rprop", 7),
          entry<optim::ASGD>("asgd", 5),
          entry<optim::Lion>("lion", 5),
          entry<optim::AdEMAMix>("ademamix", 9),
          entry<optim::AdamWScheduleFree>("schedule_free", 7),
          entry<optim::Adafactor>("adafactor", 0),
          entry<optim::AdamW8bit>("adamw8bit", 0),
          matrices_only(entry<optim::Muon>("muon", 0)),
          matrices_only(entry<optim::SOAP>("soap", 0))};
}

void measure(const Place& place, const std::string& over, const Entry& entry) {
  rg::Tensors params;
  int64_t numbers = 0;
  for (const rg::IntArray& shape : shapes_of(over)) {
    if (entry.only_matrices && shape.size() != 2) continue;
    const rg::TensorOptions options(rg::kFloat32, place.device());
    params.push_back(rg::randn(shape, options).requires_grad_());
    params.back().set_grad(rg::randn(shape, options));
    numbers += params.back().numel();
  }
  if (params.empty()) return;
  const double copy_rate_now = copy_rate(place, numbers),
               bytes = static_cast<double>(numbers) * sizeof(float);
  const auto optimizer = entry.make(params);
  const auto print = [&](const char* mode, const std::function<void()>& step) {
    for (int i = 0; i < 3; ++i) step();
    const double ms = median_seconds(place, step, kRuns) * 1e3;
    Line line;
    line.text("bench", "optimizer")
        .text("name", entry.name)
        .text("over", over)
        .text("mode", mode)
        .text("device", place.name())
        .count("tensors", static_cast<int64_t>(params.size()))
        .count("numbers", numbers)
        .number("step_ms", ms, 3)
        .number("copy_ms", 2 * bytes / copy_rate_now * 1e3, 3);
    if (entry.arrays > 0) line.number("share", entry.arrays * bytes / (ms * 1e-3) / copy_rate_now, 3);
    line.print();
  };
  print("eager", [&] { optimizer->step(); });
  auto step = rg::compile_step([&] { optimizer->step(); });
  print("step", [&] { step(); });
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  int threads = 2;
  std::vector<std::string> names;
  CLI::App app("A step of each optimizer compared with a copy");
  app.add_option("--threads", threads, "threads to compute with")->check(CLI::Range(1, 1024));
  app.add_option("--names", names, "of the optimizers to measure; all")->delimiter(',');
  return bench::run_program(app, argc, argv, [&](const bench::Place& place) {
    rg::cpu::set_num_threads(threads);
    rg::manual_seed(0);
    for (const char* over : {"flat", "gpt"})
      for (const bench::Entry& entry : bench::entries())
        if (names.empty() || std::ranges::count(names, entry.name) > 0) bench::measure(place, over, entry);
  });
}
