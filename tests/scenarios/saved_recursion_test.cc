// A pair of saved-tensor hooks whose own functions save tensors: the pair is not called for those.
// Pending: pack and unpack should run with no default pair, else pack calls itself without end and the stack
// overflows.
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
