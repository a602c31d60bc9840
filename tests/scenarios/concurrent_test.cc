// Compiled backwards at the same time and inside of each other: two threads, and hooks that run their own backward. Not
// tested here: one CompiledBackward for several threads (concurrent_shared_test.cc).
#include <atomic>
#include <thread>

#include "hook_scenario.h"

namespace retrograd::scenario {
namespace {

Tensor loss_of(const Tensor& x, const Tensor& w) {
  const Tensor h = tanh(mm(x, w));
  return sum(h * h);
}

}  // namespace

TEST_CASE("S131 two threads run compiled backwards at the same time, each with the result of an eager one") {
  constexpr int kThreads = 2, kSteps = 50;
  Tensors expected;
  for (int k = 0; k < kThreads; ++k) {
    const Tensor w = some_leaf({3 + k, 2});
    loss_of(some_values({4, 3 + k}), w).backward();
    expected.push_back(w.grad());
  }
  std::atomic<int> ready{0}, wrong{0}, captures{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < kThreads; ++k)
    threads.emplace_back([&, k] {
      CompiledBackward compiled = compile_backward();
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      for (int step = 0; step < kSteps; ++step) {
        const Tensor w = some_leaf({3 + k, 2});
        compiled(loss_of(some_values({4, 3 + k}), w));
        wrong += !same_bits(w.grad(), expected[static_cast<size_t>(k)]);
      }
      captures += static_cast<int>(compiled.stats().captures);
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(captures == kThreads);
}

TEST_CASE("S131 a compiled backward may move to another thread between two calls") {
  CompiledBackward compiled = compile_backward();
  const Tensor w = some_leaf({3, 2});
  compiled(loss_of(some_values({4, 3}), w));
  const Tensor here = w.grad();
  w.set_grad({});
  std::thread([&] { compiled(loss_of(some_values({4, 3}), w)); }).join();
  CHECK(same_bits(w.grad(), here));
  CHECK(compiled.stats().captures == 1);
  CHECK(compiled.stats().hits == 1);
}

TEST_CASE("S132 a hook runs the backward of another graph, and both are compiled") {
  const auto stats = run_both(
      [](Mode& mode) {
        const Tensor a = leaf({1, 2}), inner = leaf({3, 4}), y = a * a;
        y.register_hook([&](const Tensor& g) {
          mode.log("inner");
          const EnableGradGuard with_gradients;  // they are off in hooks
          mode.backward(sum(exp(inner) * 2.0));
          return (g * inner.grad()).detach();
        });
        mode.backward(sum(y));
        CHECK(mode.events == Events{"inner"});
        CHECK(same_bits(inner.grad(), exp(inner.detach()) * 2.0));
        return Tensors{a.grad(), inner.grad()};
      },
      2);
  CHECK(stats.captures == 2);
  CHECK(stats.hits == 4);
}

TEST_CASE("S132 an unpack hook recomputes by a backward of its own") {
  run_both(
      [](Mode& mode) {
        const Tensor a = leaf({1, 2});
        Tensor y;
        {
          SavedTensorHooksGuard guard([](const Tensor& t) { return clone(t); },
                                      [&](const Tensor& t) {
                                        const EnableGradGuard with_gradients;
                                        const Tensor x = t.detach().clone().requires_grad_();
                                        return mode.grad(sum(x * x) * 0.5, x);  // x again
                                      });
          y = sin(a);
        }
        mode.backward(sum(y));
        CHECK(same_bits(a.grad(), cos(a.detach())));
        return Tensors{a.grad()};
      },
      2);
}

TEST_CASE("S132 a hook runs many backwards of the structure that is running, of other sizes") {
  CompiledBackward compiled = compile_backward();
  for (const bool traced : {false, true}) {
    Mode mode(traced ? &compiled : nullptr);
    std::function<Tensor(int64_t, int)> gradient = [&](int64_t size, int depth) {
      const Tensor a = some_leaf({size}), y = sin(a);
      y.register_hook([&, depth](const Tensor& g) {
        const EnableGradGuard with_gradients;
        for (int64_t n = 2; depth == 0 && n < 42; ++n) {  // more sizes than a graph keeps plans
          const Tensor b = some_values({n});
          REQUIRE(same_bits(gradient(n, 1), cos(b) * cos(sin(b))));
        }
        return g * 1.0;
      });
      const Tensor z = sin(y);
      mode.backward(sum(z));
      return a.grad();
    };
    const Tensor b = some_values({50});
    CHECK(same_bits(gradient(50, 0), cos(b) * cos(sin(b))));
  }
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("S132 a hook runs a backward of the structure and sizes that are running, with other numbers") {
  CompiledBackward compiled = compile_backward();
  for (const bool traced : {false, true}) {
    Mode mode(traced ? &compiled : nullptr);
    std::function<Tensor(double, int)> gradient = [&](double factor, int depth) {
      const Tensor a = leaf({1, 2}), y = a * factor, z = y * 1.0;
      z.register_hook([&, depth](const Tensor& g) {
        const EnableGradGuard with_gradients;
        if (depth == 0) {
          CHECK(values(gradient(5, 1)) == Values{5, 5});
        }
        return g * 1.0;
      });
      mode.backward(sum(z));
      return a.grad();
    };
    INFO((traced ? "traced" : "eager"));
    for (int i = 0; i < 2; ++i) CHECK(values(gradient(2, 0)) == Values{2, 2});
  }
  CHECK(compiled.stats().captures == 1);
}

}  // namespace retrograd::scenario
