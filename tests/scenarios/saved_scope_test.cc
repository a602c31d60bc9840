// Scopes of saved-tensor hooks: nesting, their end, other threads, a backward that is itself recorded.
// Not tested here: refused scopes (saved_errors_test.cc).
#include <thread>

#include "hook_scenario.h"

namespace retrograd::scenario {

TEST_CASE("S93, hook 6 of nested pairs the innermost applies: 50a inside, 18b outside of it, 2a after both") {
  run_both(
      [](Mode& mode) {
        const Tensor a = leaf({1, 2}), b = leaf({1, 2}), c = leaf({1, 2});
        Tensor y, z;
        {
          const auto outer = scaling(3, 3), inner = scaling(5, 5);
          SavedTensorHooksGuard guard(outer);
          {
            SavedTensorHooksGuard first(inner), again(inner);  // the same pair twice is fine
            y = a * a;
          }
          z = b * b;
        }
        mode.backward(sum(y));
        mode.backward(sum(z));
        mode.backward(sum(c * c));
        CHECK(values(a.grad()) == Values{50, 100});
        CHECK(values(b.grad()) == Values{18, 36});
        CHECK(values(c.grad()) == Values{2, 4});
        return Tensors{a.grad(), b.grad()};
      },
      2);
}

TEST_CASE("S94, hook 7 after the scope nothing is packed, and its pair still unpacks") {
  run_both([](Mode& mode) {
    Counts counts;
    const Tensor a = leaf({1, 2});
    Tensor y;
    {
      SavedTensorHooksGuard guard(counts.hooks());
      y = a * a;
    }
    const Tensor z = y * y;
    CHECK(counts.packs == 2);
    mode.backward(sum(z));
    CHECK(counts.unpacks == 2);
    CHECK(values(a.grad()) == Values{4, 32});
    return Tensors{a.grad()};
  });
}

TEST_CASE("hook 18 the pair of one thread is not seen by another") {
  Counts counts;
  SavedTensorHooksGuard guard(counts.hooks());
  const Tensor a = leaf({1, 2});
  std::thread([&] { sum(a * a).backward(); }).join();
  CHECK(counts.packs == 0);
  CHECK(counts.unpacks == 0);
  CHECK(values(a.grad()) == Values{2, 4});
}

TEST_CASE("hook 18 hooks that are open during a backward with create_graph pack what its records save") {
  run_both(
      [](Mode& mode) {
        Counts counts;
        const Tensor a = leaf({1, 2}), y = sum(a * a * a);
        Tensor g;
        {
          SavedTensorHooksGuard guard(counts.hooks());
          g = mode.grad(y, a, true, true);
        }
        mode.log("packs " + std::to_string(counts.packs));
        CHECK(counts.packs > 0);
        CHECK(counts.unpacks == 0);
        mode.backward(sum(g));
        CHECK(counts.unpacks == counts.packs);
        CHECK(values(a.grad()) == Values{6, 12});
        return Tensors{g.detach(), a.grad()};
      },
      2);
}

}  // namespace retrograd::scenario
