// Cost of the engine itself: a chain y = y * w of one-element float32 ops on one thread, as in benchmarks/peers/engine_overhead.cpp.
// Prints one JSON line:
//   forward_ns           an op without a record                       (peer: "forward no-grad")
//   record_ns            an op with a record, the user's line included (peer: "forward recording")
//   backward_ns          a record in an eager backward                (peer: "backward")
//   capture_us_per_node  a graph node in the first traced backward: walk, key, recording, planning and its run
//   replay_ns_per_node   a graph node in a later one: walk, key, binding and replay (the graph has an unpack and a mul per record)
//   location_ns          of record_ns, what it takes to carry the user's file and line
// Medians of `reps` runs; the sides of a comparison must alternate on a shared machine (benchmarks/README.md).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kNodes = 1000, kReps = 200;

double median_ns(const std::function<double()>& run) {
  std::vector<double> times;
  for (int r = 0; r < kReps; ++r) times.push_back(run());
  std::nth_element(times.begin(), times.begin() + kReps / 2, times.end());
  return times[kReps / 2];
}

double since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

rg::Tensor chain(rg::Tensor y, const rg::Tensor& w) {
  for (int i = 0; i < kNodes; ++i) y = y * w;
  return y;
}

}  // namespace

int main() {
  const rg::Tensor x = rg::ones({1}).requires_grad_(), w = rg::full({1}, 0.999), one = rg::ones({1});
  const double forward = median_ns([&] {
    rg::NoGradGuard no_grad;
    const auto begin = Clock::now();
    chain(w, w);
    return since(begin) / kNodes;
  });
  const double record = median_ns([&] {
    const auto begin = Clock::now();
    const rg::Tensor y = chain(x, w);
    return since(begin) / kNodes;
  });
  const double without_location = median_ns([&] {
    const auto begin = Clock::now();
    rg::Tensor y = x;
    for (int i = 0; i < kNodes; ++i)
      y = rg::mul(rg::Operand(y, rg::SourceLocation{}), rg::Operand(w, rg::SourceLocation{}));
    return since(begin) / kNodes;
  });
  const double backward = median_ns([&] {
    const rg::Tensor y = chain(x, w);
    const auto begin = Clock::now();
    y.backward(one);
    return since(begin) / kNodes;
  });
  rg::CompiledBackward traced = rg::compile_backward();
  const double capture = median_ns([&] {
    traced.reset();
    const rg::Tensor y = chain(x, w);
    const auto begin = Clock::now();
    traced.backward({y}, {one});
    return since(begin) / static_cast<double>(traced.stats().nodes);
  });
  const double replay = median_ns([&] {
    const rg::Tensor y = chain(x, w);
    const auto begin = Clock::now();
    traced.backward({y}, {one});
    return since(begin) / static_cast<double>(traced.stats().nodes);
  });
  std::printf(
      "{\"forward_ns\":%.1f,\"record_ns\":%.1f,\"backward_ns\":%.1f,\"capture_us_per_node\":%.3f,\"replay_ns_"
      "per_node\":%.1f,\"location_ns\":%.1f}\n",
      forward, record, backward, capture / 1000, replay, record - without_location);
}
