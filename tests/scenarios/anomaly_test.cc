// Detecting nan in a backward. Each computed gradient is checked; the first with a nan is an Error(bad_argument) that
// names the op, its operands and the line of the forward call.
#include <limits>

#include "hook_scenario.h"

namespace retrograd::scenario {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("S128 a nan that is in .grad at entry is an error before anything runs") {
  for (const bool traced : {false, true}) {
    CompiledBackward compiled = compile_backward();
    Mode mode(traced ? &compiled : nullptr);
    const Tensor a = leaf({1, 2});
    a.set_grad(tensor({std::numeric_limits<double>::quiet_NaN(), 0}));
    int calls = 0;
    const Tensor y = a * 2.0;
    y.register_hook([&](const Tensor&) { return ++calls, Tensor(); });
    std::string text;
    {
      autograd::DetectAnomalyGuard guard;
      category_of([&] { mode.backward(sum(y)); }, &text);
    }
    CHECK(contains(text, "nan"));
    CHECK(calls == 0);
    CHECK_NOTHROW(mode.backward(sum(a * 2.0)));  // outside of the guard
  }
}

TEST_CASE("S129 a nan that a rule produces is an error that names the op and the line of its forward") {
  for (const bool traced : {false, true}) {
    CompiledBackward compiled = compile_backward();
    Mode mode(traced ? &compiled : nullptr);
    const Tensor a = leaf({-1, 2});
    const Tensor b = a * 3.0;
    const int line = __LINE__ + 1;
    const Tensor c = sqrt(b);  // nan
    std::string text;
    autograd::DetectAnomalyGuard guard;
    category_of([&] { mode.backward(sum(c)); }, &text);
    INFO(text);
    CHECK(contains(text, "nan"));
    CHECK(contains(text, "sqrt"));
    CHECK(contains(text, "anomaly_test.cc:" + std::to_string(line)));
    CHECK_FALSE(a.grad().defined());
    category_of([&] { mode.grad(sum(sqrt(a * 3.0)), a); }, &text);
    CHECK(contains(text, "sqrt"));
  }
}

TEST_CASE("S129 a backward without nan is the same under the guard, and needs no other capture twice") {
  run_both([](Mode& mode) {
    autograd::DetectAnomalyGuard guard;
    const Tensor a = leaf({1, 2});
    mode.backward(sum(sqrt(a * a)));
    CHECK(values(a.grad()) == Values{1, 1});
    return Tensors{a.grad()};
  });
}

}  // namespace retrograd::scenario
