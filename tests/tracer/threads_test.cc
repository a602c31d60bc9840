// One compiled step that several threads call at the same time, on shared leaves: the result is that of sequential
// calls.
#include <catch2/catch.hpp>
#include <thread>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;

constexpr int kThreads = 4;

void on_all_threads(const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (std::thread& t : threads) t.join();
}

}  // namespace

TEST_CASE("a step of four threads accumulates into a leaf that they share") {
  const Tensor w = leaf({1, 2});
  auto step = rg::compile_step([&](const Tensor& x) { rg::sum(w * x).backward(); });
  constexpr int kCalls = 300;
  on_all_threads([&](int) {
    for (int i = 0; i < kCalls; ++i) step(rg::ones({2}));
  });
  CHECK(values(w.grad()) == std::vector<double>{kThreads * kCalls, kThreads * kCalls});
}

TEST_CASE("a step of four threads that is recorded again for each shape") {
  const Tensor w = leaf({1});
  auto step = rg::compile_step([&](const Tensor& x) { rg::sum(w * x).backward(); });
  constexpr int kCalls = 60;
  on_all_threads([&](int t) {
    for (int i = 0; i < kCalls; ++i) step(rg::ones({1 + (i + t) % 5}));
  });
  double expected = 0;
  for (int t = 0; t < kThreads; ++t)
    for (int i = 0; i < kCalls; ++i) expected += 1 + (i + t) % 5;
  CHECK(values(w.grad()) == std::vector<double>{expected});
}
