// Cost of a very deep graph: a chain of 10^4, 10^5 and 10^6 multiplications of one-element tensors, one thread, as in
// peers/deep_graph.cpp. Prints a JSON line for each: nodes, and ns per node
//   record_ns, backward_ns, drop_ns  to record the chain, to run its backward, to drop it. Without warm-up: memory is
//                                    new, except for the memory that shorter chains have freed
//   record_again_ns                  to record it again, into the memory of the first
// The difference of the two is the system's cost of touching a page for the first time.
#include <chrono>
#include <cstdio>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using Clock = std::chrono::steady_clock;

namespace {

rg::Tensor chain(const rg::Tensor& x, const rg::Tensor& w, int nodes) {
  rg::Tensor y = x;
  for (int i = 0; i < nodes; ++i) y = y * w;
  return y;
}

void measure(int nodes) {
  const rg::Tensor x = rg::ones({1}).requires_grad_(), w = rg::full({1}, 0.9999);
  const auto begin = Clock::now();
  rg::Tensor y = chain(x, w, nodes);
  const auto recorded = Clock::now();
  y.backward(rg::ones({1}));
  const auto differentiated = Clock::now();
  y = rg::Tensor();
  const auto dropped = Clock::now();
  y = chain(x, w, nodes);
  const auto recorded_again = Clock::now();
  const auto ns = [nodes](Clock::duration d) {
    return std::chrono::duration<double, std::nano>(d).count() / nodes;
  };
  std::printf(
      "{\"nodes\":%d,\"record_ns\":%.1f,\"backward_ns\":%.1f,\"drop_ns\":%.1f,\"record_again_ns\":%.1f}\n",
      nodes, ns(recorded - begin), ns(differentiated - recorded), ns(dropped - differentiated),
      ns(recorded_again - dropped));
}

}  // namespace

int main() {
  rg::cpu::set_num_threads(1);
  for (const int nodes : {10'000, 100'000, 1'000'000}) measure(nodes);
}
