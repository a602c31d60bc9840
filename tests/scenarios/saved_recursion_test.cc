// A pair of saved-tensor hooks whose own functions save tensors: pack and unpack run without a default pair,
// so the pair is not called for those, and pack does not call itself without end. Not tested here: guards
// inside guards (saved_scope_test.cc).
#include "hook_scenario.h"

namespace retrograd::scenario {

TEST_CASE("S93 a pack hook that records ops of its own does not pack what these save") {
  run_both([](Mode& mode) {
    int packs = 0;
    const Tensor a = leaf({1, 2}), factor = leaf({1, 1});
    Tensor y;
    {
      SavedTensorHooksGuard guard(
          [&](const Tensor& t) {
            ++packs;
            const EnableGradGuard with_gradients;
            return t * factor;
          },
          [](const Tensor& t) { return t; });
      y = a * a;
    }
    CHECK(packs == 2);
    mode.backward(sum(y));
    CHECK(values(a.grad()) == Values{2, 4});
    CHECK_FALSE(factor.grad().defined());
    return Tensors{a.grad()};
  });
}

}  // namespace retrograd::scenario
