// Cost of capturing and of running a captured backward: a chain of N one-element float32 multiplications, one thread,
// as in benchmarks/peers/capture.py. usage: capture [N]
// Prints one JSON line; all figures are per multiplication (one tape record, two graph nodes):
//   first_us_per_node   the first traced backward: walk, key, recording, verifier, plan and its run
//   run_ns_per_node     a later one: look-up, binding and replay
//   lookup_ns_per_node  the part of that for finding graph and plan and collecting the records
// Medians; a graph of a million records is run fewer times.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using Clock = std::chrono::steady_clock;

namespace {

struct Chain {
  int64_t nodes;
  rg::Tensor x = rg::ones({1}).requires_grad_(), w = rg::full({1}, 0.999), one = rg::ones({1});

  rg::Tensor build() const {
    rg::Tensor y = x;
    for (int64_t i = 0; i < nodes; ++i) y = y * w;
    return y;
  }
  // Median of the time that `work` takes on a fresh chain, in ns per multiplication.
  double median_ns(int repetitions, const std::function<void(const rg::Tensor&)>& work) const {
    std::vector<double> times;
    for (int i = 0; i < repetitions; ++i) {
      const rg::Tensor y = build();
      const auto begin = Clock::now();
      work(y);
      times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count() /
                      static_cast<double>(nodes));
    }
    std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
    return times[static_cast<size_t>(repetitions / 2)];
  }
};

}  // namespace

int main(int argc, char** argv) {
  const long long nodes = argc > 1 ? std::atoll(argv[1]) : 1000;
  if (nodes < 1) {
    std::fputs("usage: capture [N], N at least 1\n", stderr);
    return 2;
  }
  const Chain chain{nodes};
  const int repetitions = nodes > 100'000 ? 7 : nodes > 10'000 ? 20 : 200;
  rg::CompiledBackward traced = rg::compile_backward();
  const double eager = chain.median_ns(repetitions, [&](const rg::Tensor& y) { y.backward(chain.one); });
  const double first = chain.median_ns(std::max(repetitions / 4, 3), [&](const rg::Tensor& y) {
    traced.reset();
    traced.backward({y}, {chain.one});
  });
  const double run =
      chain.median_ns(repetitions, [&](const rg::Tensor& y) { traced.backward({y}, {chain.one}); });
  bool known = true;
  const double lookup =
      chain.median_ns(repetitions, [&](const rg::Tensor& y) { known &= traced.knows({y}, {chain.one}); });
  if (!known || traced.stats().captures != 1) {
    std::fputs("the chain was captured more than once\n", stderr);
    return 1;
  }
  std::printf(
      "{\"nodes\":%lld,\"first_us_per_node\":%.3f,\"run_ns_per_node\":%.1f,\"lookup_ns_per_node\":%.1f,"
      "\"eager_ns_per_node\":%.1f}\n",
      nodes, first / 1000, run, lookup, eager);
}
