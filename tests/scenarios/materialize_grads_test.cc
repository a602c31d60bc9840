// grad() with materialize_grads: zeros for inputs that are not reached. Not tested here: the other forms of grad()
// (inputs_test.cc). The option follows allow_unused, in autograd::grad and in CompiledBackward::grad.
#include "scenario.h"

using namespace scenario;
using Values = std::vector<double>;

TEST_CASE("S24 materialize_grads gives zeros for an input that is not reached") {
  rg::CompiledBackward compiled = rg::compile_backward();
  for (bool traced : {false, true, true}) {
    const Tensor x = leaf({1, 2}), unused = leaf({9, 9, 9});
    const Tensor loss = rg::sum(x * x);
    const Tensors grads = traced ? compiled.grad({loss}, {x, unused}, {}, {}, false, true, true)
                                 : rg::autograd::grad({loss}, {x, unused}, {}, {}, false, true, true);
    REQUIRE(grads.size() == 2);
    CHECK(values(grads[0]) == Values{2, 4});
    CHECK(values(grads[1]) == Values{0, 0, 0});
  }
  CHECK(compiled.stats().captures == 1);
}
