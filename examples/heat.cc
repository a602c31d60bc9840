// Finds how well a rod conducts heat from its temperatures at the end: the gradient of a simulation of 10,000 steps, with
// the memory of 20.
//
//   heat [STEPS [SLOTS [DISK_SLOTS]]]     default: 10000 20 0
//
// The temperature u at 256 points obeys u' = (k u')', with insulated ends; k differs from point to point and is found by
// gradient descent. Backwards through all steps would keep 10,000 saved states. checkpoint_loop keeps SLOTS of them in
// memory, DISK_SLOTS in a file, and executes the rest again: 39,335 steps for 10,000.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

constexpr int64_t kPoints = 256;
constexpr int kIterations = 5;

// One step of explicit Euler, of length 1 on a grid of width 1; stable for k <= 0.5. `k` belongs to the places between
// the points.
Tensor step(const Tensor& u, const Tensor& k) {
  const Tensor flow =
      rg::pad(k * (rg::narrow(u, 0, 1, kPoints - 1) - rg::narrow(u, 0, 0, kPoints - 1)), {1, 1});
  return u + rg::narrow(flow, 0, 1, kPoints) - rg::narrow(flow, 0, 0, kPoints);
}

Tensor conductivity(const Tensor& unknown) { return rg::sigmoid(unknown) * 0.4 + 0.05; }

void run(int64_t steps, const rg::CheckpointLoopOptions& memory) {
  const Tensor place = rg::arange(0, kPoints) / static_cast<double>(kPoints);
  const Tensor start = rg::sin(place * 25.0) + place;
  const auto compiled_step = rg::compile(step);
  const auto simulate = [&](const Tensor& k) {
    rg::CheckpointLoopOptions options = memory;
    options.parameters = {k};
    return rg::checkpoint_loop(
        steps, [compiled_step, k](const Tensor& u) { return compiled_step(u, k); }, start, options);
  };
  const Tensor truth = rg::sin(rg::narrow(place, 0, 0, kPoints - 1) * 6.0);
  Tensor measured;
  {
    const rg::NoGradGuard no_grad;
    measured = simulate(conductivity(truth));
  }

  const Tensor unknown = rg::zeros({kPoints - 1}).requires_grad_();
  rg::optim::AdamW optimizer({unknown}, {.lr = 0.1, .weight_decay = 0});
  const int64_t resident = rg::memory::stats().live_bytes, executed = rg::checkpoint_loop_stats().steps;
  rg::memory::reset_peak();
  for (int i = 0; i < kIterations; ++i) {
    optimizer.zero_grad();
    const Tensor difference = simulate(conductivity(unknown)) - measured;
    const Tensor loss = rg::mean(difference * difference);
    loss.backward();
    optimizer.step();
    std::printf("iteration %d loss %.3e\n", i + 1, loss.item<double>());
    std::fflush(stdout);
  }
  const double each = static_cast<double>(rg::checkpoint_loop_stats().steps - executed) / kIterations;
  std::printf("%lld steps, %.0f executed for each gradient (%.2f times), at most %.0f KiB in use\n",
              static_cast<long long>(steps), each, each / static_cast<double>(steps),
              static_cast<double>(rg::memory::stats().peak_bytes - resident) / 1024);
}

int64_t number(int argc, char** argv, int i, int64_t otherwise) {
  if (argc <= i) return otherwise;
  char* end = nullptr;
  const int64_t value = std::strtoll(argv[i], &end, 10);
  if (*argv[i] == 0 || *end != 0 || value < 1)
    throw rg::Error(rg::Category::bad_argument, std::string(argv[i]) + ": a positive number is expected");
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int64_t disk_slots = argc > 3 ? number(argc, argv, 3, 1) : 0;
    run(number(argc, argv, 1, 10000), {.slots = number(argc, argv, 2, 20),
                                       .disk_slots = disk_slots,
                                       .folder = std::filesystem::temp_directory_path().string()});
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "heat: %s\n", e.what());
    return 2;
  }
}
