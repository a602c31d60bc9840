// Cost of the engine itself: a chain y = y * w of 1,000 one-element float32 ops on one thread, as in
// peers/engine_overhead.cpp. Prints one JSON line, medians of 200 rounds. As in the peer, a round does these
// three in turn:
//   record_ns    an op with a record, the user's line included            (peer: "forward recording")
//   backward_ns  a record in an eager backward, the cotangent made anew   (peer: "backward")
//   forward_ns   an op without a record                                   (peer: "forward no-grad")
// Then, in rounds of their own:
//   replay_ns            a record in a backward through compile_backward(), captured before: look-up,
//                        binding, run
//   replay_ns_per_node   the same for a graph node (there are an unpack and a mul per record)
//   capture_us_per_node  a graph node in the first such backward: walk, key, recording, planning and its run
//   location_ns          of record_ns, what it takes to carry the user's file and line
// The sides of a comparison must alternate on a shared machine.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kNodes = 1000, kReps = 200;

double ns_of(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kNodes;
}

double median(std::vector<double>& times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

// y becomes y * w, kNodes times.
void extend(rg::Tensor& y, const rg::Tensor& w) {
  for (int i = 0; i < kNodes; ++i) y = y * w;
}

void extend_without_location(rg::Tensor& y, const rg::Tensor& w) {
  for (int i = 0; i < kNodes; ++i)
    y = rg::mul(rg::Operand(y, rg::SourceLocation{}), rg::Operand(w, rg::SourceLocation{}));
}

rg::Tensor chain(const rg::Tensor& x, const rg::Tensor& w) {
  rg::Tensor y = x;
  extend(y, w);
  return y;
}

struct Eager {
  std::vector<double> forward, record, backward;

  void round(const rg::Tensor& x, const rg::Tensor& w) {
    rg::Tensor y = x;
    record.push_back(ns_of([&] { extend(y, w); }));
    backward.push_back(ns_of([&] { y.backward(rg::ones({1})); }));
    rg::NoGradGuard no_grad;
    rg::Tensor z = w;
    forward.push_back(ns_of([&] { extend(z, w); }));
  }
};

struct Traced {
  rg::CompiledBackward captured = rg::compile_backward(), fresh = rg::compile_backward();
  std::vector<double> replay, capture;

  void round(const rg::Tensor& x, const rg::Tensor& w) {
    for (auto [backward, times] : {std::pair(&fresh, &capture), std::pair(&captured, &replay)}) {
      const rg::Tensor y = chain(x, w);
      times->push_back(ns_of([&] { backward->backward({y}, {rg::ones({1})}); }));
    }
    fresh.reset();
  }
  double nodes_per_record() const { return static_cast<double>(captured.stats().nodes) / kNodes; }
};

}  // namespace

int main() {
  rg::cpu::set_num_threads(1);
  const rg::Tensor x = rg::ones({1}).requires_grad_(), w = rg::full({1}, 0.999);
  Eager eager;
  for (int r = 0; r < kReps; ++r) eager.round(x, w);
  Traced traced;
  for (int r = 0; r < kReps; ++r) traced.round(x, w);
  std::vector<double> unlocated, located;
  for (int r = 0; r < kReps; ++r) {
    rg::Tensor y = x, z = x;
    located.push_back(ns_of([&] { extend(y, w); }));
    unlocated.push_back(ns_of([&] { extend_without_location(z, w); }));
  }
  const double replay = median(traced.replay), nodes = traced.nodes_per_record();
  std::printf(
      "{\"forward_ns\":%.1f,\"record_ns\":%.1f,\"backward_ns\":%.1f,\"replay_ns\":%.1f,"
      "\"replay_ns_per_node\":%.1f,\"capture_us_per_node\":%.3f,\"location_ns\":%.1f}\n",
      median(eager.forward), median(eager.record), median(eager.backward), replay, replay / nodes,
      median(traced.capture) / nodes / 1000, median(located) - median(unlocated));
}
