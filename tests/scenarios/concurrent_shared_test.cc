// One CompiledBackward for several threads, and scopes that route a hook's own backward through it.
// Not tested here: separate objects (concurrent_test.cc), scopes as such.
#include <atomic>
#include <thread>

#include "hook_scenario.h"

namespace retrograd::scenario {

TEST_CASE("S131 two threads share one CompiledBackward, with hooks and sizes of their own") {
  constexpr int kThreads = 2, kSteps = 60;
  CompiledBackward compiled = compile_backward();
  std::atomic<int> ready{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < kThreads; ++k)
    threads.emplace_back([&, k] {
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      for (int step = 0; step < kSteps; ++step) {
        Tensor grads[2];
        for (const bool traced : {false, true}) {
          Mode mode(traced ? &compiled : nullptr);
          const Tensor w = some_leaf({3 + (step + k) % 20, 2});  // more sizes than a graph keeps plans
          const Tensor h = tanh(w * (1.0 + k)), y = step % 2 ? h * h : exp(h);
          h.register_hook(times(2.0 + step + k));
          mode.backward(sum(y));
          grads[traced] = w.grad();
        }
        wrong += !same_bits(grads[0], grads[1]);
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(compiled.stats().captures <=
        2 * kThreads);  // two threads that meet a new structure may both record it
}

TEST_CASE("S132 in a scope the plain backward of a hook is compiled, too; a null scope switches it off") {
  CompiledBackward compiled = compile_backward();
  for (int i = 0; i < 3; ++i) {
    CompiledBackwardScope scope(compiled);
    const Tensor a = leaf({1, 2}), inner = leaf({3, 4}), left_out = leaf({5, 6}), y = a * a;
    y.register_hook([&](const Tensor&) {
      const EnableGradGuard with_gradients;
      sum(inner * 3.0).backward();
      CompiledBackwardScope off(nullptr);
      sum(exp(left_out)).backward();
      return Tensor();
    });
    sum(y).backward();
    CHECK(values(a.grad()) == Values{2, 4});
    CHECK(values(inner.grad()) == Values{3, 3});
    CHECK(same_bits(left_out.grad(), exp(left_out.detach())));
  }
  CHECK(compiled.stats().captures == 2);
  CHECK(compiled.stats().hits == 4);
}

TEST_CASE("S132 a hook that forgets all graphs does not disturb the backward that is running") {
  CompiledBackward compiled = compile_backward();
  const Tensor a = leaf({1, 2}), y = sin(a);
  y.register_hook([&](const Tensor&) { return compiled.reset(), Tensor(); });
  compiled(sum(exp(y)));
  const Tensor b = leaf({1, 2});
  sum(exp(sin(b))).backward();
  CHECK(same_bits(a.grad(), b.grad()));
}

}  // namespace retrograd::scenario
