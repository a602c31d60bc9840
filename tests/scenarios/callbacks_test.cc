// Callbacks that a hook queues for the end of its backward: their order, nesting, what happens outside of a
// backward. Not tested here: callbacks queued by a custom function.
#include <stdexcept>

#include "hook_scenario.h"

namespace retrograd::scenario {

TEST_CASE("S88 callbacks run after all leaves have accumulated, in order, and may queue further ones") {
  run_both(
      [](Mode& mode) {
        const Tensor a = leaf({1, 2}), b = leaf({3, 4}), y = a * 2.0 + b;
        y.register_hook([&](const Tensor&) {
          autograd::queue_callback([&] {
            CHECK(values(a.grad()) == Values{2, 2});
            CHECK(values(b.grad()) == Values{1, 1});
            mode.log("first");
            autograd::queue_callback([&] { mode.log("queued by the first"); });
          });
          autograd::queue_callback([&] { mode.log("second"); });
          return Tensor();
        });
        a.register_post_accumulate_grad_hook([&](const Tensor&) { mode.log("a"); });
        b.register_post_accumulate_grad_hook([&](const Tensor&) { mode.log("b"); });
        mode.backward(sum(y));
        CHECK(mode.events == Events{"b", "a", "first", "second", "queued by the first"});
        mode.backward(sum(y.detach().requires_grad_()));
        CHECK(mode.events.size() == 5);  // they belong to one backward
        return Tensors{a.grad(), b.grad()};
      },
      2);
}

TEST_CASE("S88 a callback of an inner backward runs at the end of that one") {
  run_both(
      [](Mode& mode) {
        const Tensor a = leaf({1, 2}), inner = leaf({3, 4}), y = a * 2.0;
        y.register_hook([&](const Tensor&) {
          const EnableGradGuard with_gradients;
          autograd::queue_callback([&] { mode.log("outer"); });
          const Tensor z = inner * 3.0;
          z.register_hook(
              [&](const Tensor&) { return autograd::queue_callback([&] { mode.log("inner"); }), Tensor(); });
          mode.backward(sum(z));
          mode.log("inner is done");
          return Tensor();
        });
        mode.backward(sum(y));
        CHECK(mode.events == Events{"inner", "inner is done", "outer"});
        return Tensors{a.grad(), inner.grad()};
      },
      2);
}

TEST_CASE("S88 outside of a backward there is nothing to queue for; after an exception no callback runs") {
  CHECK(category_of([] { autograd::queue_callback([] {}); }) == Category::hook_forbidden);
  int calls = 0;
  const Tensor a = leaf({1, 2}), y = a * 2.0;
  y.register_hook([&](const Tensor&) { return autograd::queue_callback([&] { ++calls; }), Tensor(); });
  a.register_hook([](const Tensor&) -> Tensor { throw std::domain_error("a"); });
  CHECK_THROWS_AS(sum(y).backward(), std::domain_error);
  CHECK(calls == 0);
}

}  // namespace retrograd::scenario
