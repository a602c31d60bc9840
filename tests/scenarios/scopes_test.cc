// CompiledBackwardScope: while one lives, loss.backward(), autograd::backward and autograd::grad of this thread go
// through its CompiledBackward. Scopes nest, and a null scope switches compiling off inside. Not tested here: other
// threads.
#include "scenario.h"

using namespace scenario;
using Values = std::vector<double>;

TEST_CASE("S5 scopes nest, and each end gives the backward back to the scope around it") {
  rg::CompiledBackward a = rg::compile_backward(), b = rg::compile_backward();
  const Tensor x = leaf({1, 2});
  const auto step = [&] { rg::sum(x * x).backward(); };
  const auto calls = [](const rg::CompiledBackward& c) { return c.stats().captures + c.stats().hits; };
  step();
  {
    rg::CompiledBackwardScope outer(a);
    step();
    CHECK(calls(a) == 1);
    {
      rg::CompiledBackwardScope inner(b);
      step();
      {
        rg::CompiledBackwardScope again(a);
        step();
      }
      step();
      CHECK(calls(a) == 2);
      CHECK(calls(b) == 2);
      {
        rg::CompiledBackwardScope off(nullptr);
        step();
      }
      CHECK(calls(a) + calls(b) == 4);
    }
    rg::autograd::backward({rg::sum(x * x)});
    CHECK(calls(a) == 3);
    CHECK(values(rg::autograd::grad({rg::sum(x * x)}, {x})[0]) == Values{2, 4});
    CHECK(calls(a) == 4);
  }
  step();
  CHECK(calls(a) == 4);
  CHECK(calls(b) == 2);
  CHECK(a.stats().captures == 2);  // the backward and the grad()
  CHECK(b.stats().captures == 1);
  CHECK(values(x.grad()) == Values{16, 32});  // eight backwards
}

TEST_CASE("S5 a scope that an exception leaves is closed") {
  rg::CompiledBackward a = rg::compile_backward();
  const Tensor x = leaf({1, 2});
  const auto fails = [&] {
    rg::CompiledBackwardScope scope(a);
    rg::sum(ThrowsInBackward::apply(x)).backward();
  };
  CHECK_THROWS_AS(fails(), std::runtime_error);
  const auto before = a.stats();
  rg::sum(x * x).backward();
  CHECK(a.stats().captures == before.captures);
  CHECK(a.stats().hits == before.hits);
  CHECK(values(x.grad()) == Values{2, 4});
}

TEST_CASE("S13 on, off and on again around the backwards of one retained graph") {
  rg::CompiledBackward compiled = rg::compile_backward();
  const Tensor x = leaf({2});
  const Tensor y = rg::sum(x * x);
  const auto step = [&] {
    x.set_grad({});
    y.backward({}, true);
    CHECK(values(x.grad()) == Values{4});
  };
  for (int round = 0; round < 5; ++round) {
    rg::CompiledBackwardScope on(compiled);
    step();
    {
      rg::CompiledBackwardScope off(nullptr);
      step();
    }
    step();
  }
  step();
  CHECK(compiled.stats().captures == 1);
  CHECK(compiled.stats().hits == 9);
}
