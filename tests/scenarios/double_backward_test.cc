// Backward more than once: retained and freed graphs, gradients of gradients, hooks on saved tensors under
// them, and the first scenarios of gradient hooks. Not tested here: forward mode, and order among hooks.
#include "scenario.h"

using namespace scenario;
using Values = std::vector<double>;

TEST_CASE("S57 a retained graph runs three times") {
  run_both({.steps = 2, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({2});
    const Tensor y = rg::sum(rg::pow(x, 2));
    Tensors grads;
    for (int round = 0; round < 3; ++round) {
      x.set_grad({});
      mode.backward({y}, {}, true);
      CHECK(values(x.grad()) == Values{4});
      grads.push_back(x.grad());
    }
    if (mode.traced()) CHECK(mode.captures() == 1);
    return grads;
  });
}

TEST_CASE("S58 a second backward over freed values is an error that says what to do") {
  rg::CompiledBackward compiled = rg::compile_backward();
  Mode eager, traced(&compiled);
  for (Mode* first : {&eager, &traced})
    for (Mode* second : {&eager, &traced}) {
      const Tensor x = leaf({2, 3});
      const Tensor y = rg::sum(x * x);
      first->backward(y);
      const auto again = [&] { second->backward(y); };
      CHECK(category_of(again) == rg::Category::backward_twice_freed);
      CHECK_THAT(error_of(again), Catch::Contains("retain_graph"));
      CHECK(values(x.grad()) == Values{4, 6});
    }
}

TEST_CASE("S59 a second backward is allowed where nothing was saved") {
  run_both({.steps = 2, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({2, 3});
    const Tensor y = rg::sum(x + 1.0);
    mode.backward(y);
    mode.backward(y);
    CHECK(values(x.grad()) == Values{2, 2});
    return Tensors{x.grad()};
  });
}

TEST_CASE("S60 four derivatives of x^3: at most four captures, and none when it is done again") {
  struct State {
    int64_t captures = 0;
  };
  run_both<State>({.steps = 3, .captures = 4}, [](State& s, Mode& mode, int step) {
    const Tensor x = leaf({2, 0});
    Tensor y = rg::pow(x, 3);
    Tensors derivatives;
    for (const Values& expected : {Values{12, 0}, {12, 0}, {6, 6}, {0, 0}}) {
      y = mode.grad({rg::sum(y)}, {x}, {}, {}, true)[0];
      CHECK(values(y) == expected);
      derivatives.push_back(y.detach());
    }
    if (step == 0) s.captures = mode.captures();
    CHECK(mode.captures() == s.captures);
    return derivatives;
  });
}

TEST_CASE("S62 backward with create_graph, then backward of its gradients") {
  run_both({.steps = 2, .captures = 2}, [](Mode& mode, int) {
    const Tensor x = leaf({1, 2, 3, 4}, {2, 2}), y = leaf({5, 6, 7, 8}, {2, 2}), one = rg::ones({2, 2});
    mode.backward({rg::pow(x, 2) + y * x + rg::pow(y, 2)}, {one}, {}, true);
    CHECK(values(x.grad()) == Values{7, 10, 13, 16});   // 2x + y
    CHECK(values(y.grad()) == Values{11, 14, 17, 20});  // x + 2y
    mode.backward({x.grad() * 2.0 + y.grad()}, {one});
    CHECK(values(x.grad()) == Values{12, 15, 18, 21});
    CHECK(values(y.grad()) == Values{15, 18, 21, 24});
    const Tensors grads = {x.grad().detach(), y.grad().detach()};
    x.set_grad({});
    y.set_grad({});
    return grads;
  });
}

TEST_CASE("S63 backward with create_graph makes a cycle, which clearing .grad opens") {
  rg::CompiledBackward compiled = rg::compile_backward();
  Mode eager, traced(&compiled);
  for (Mode* mode : {&eager, &traced})
    for (int round = 0; round < 2; ++round) {
      const int64_t before = rg::memory::stats().live_tensors;
      {
        const Tensor x = leaf({1, 2});
        mode->backward({rg::sum(x * x * x)}, {}, {}, true);
        REQUIRE(x.grad().requires_grad());
        x.set_grad({});
      }
      CHECK(rg::memory::stats().live_tensors == before);
    }
}

TEST_CASE("S64 hooks on saved tensors under double backward") {
  struct Case {
    const char* name;
    double packed_by;  // pack multiplies by it, unpack returns its argument
    bool in_forward, in_backward;
    double factor;  // second derivative of a^3, over a
  };
  const auto c = GENERATE(values<Case>({{"identity", 1, true, true, 6},
                                        {"forward only", 2, true, false, 12},
                                        {"backward only", 2, false, true, 24},
                                        {"forward and backward", 2, true, true, 48}}));
  INFO(c.name);
  run_both({.steps = 2, .captures = 2}, [&](Mode& mode, int) {
    const Tensor a = leaf({0.5, -1, 2});
    std::optional<rg::SavedTensorHooksGuard> guard;
    const auto hooks = [&](bool on) {
      guard.reset();
      if (on)
        guard.emplace([&](const Tensor& t) { return t * c.packed_by; }, [](const Tensor& t) { return t; });
    };
    hooks(c.in_forward);
    const Tensor loss = rg::sum(rg::pow(a, 3));
    hooks(c.in_backward);
    const Tensor g = mode.grad({loss}, {a}, {}, {}, true)[0];
    mode.backward(rg::sum(g));
    guard.reset();
    CHECK(scenario::values(a.grad()) == Values{0.5 * c.factor, -c.factor, 2 * c.factor});
    return Tensors{a.grad()};
  });
}

TEST_CASE("S65 a hook on a leaf") {
  struct State {
    Tensor x = leaf({1, 2});
  };
  run_both<State>({.steps = 3, .captures = 1}, [](State& s, Mode& mode, int step) {
    rg::HookHandle handle = s.x.register_hook([](const Tensor& g) { return g * 2.0; });
    mode.backward(rg::sum(s.x * s.x));
    handle.remove();
    CHECK(values(s.x.grad()) == Values{4.0 * (step + 1), 8.0 * (step + 1)});
    return Tensors{s.x.grad().clone()};
  });
}

TEST_CASE("S66 a pre-hook on the node of the loss") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({1, 2});
    const Tensor loss = rg::sum(x * 3.0);
    loss.grad_fn().register_prehook(
        [](const Tensors& grad_outputs) { return Tensors{grad_outputs[0] + 1.0}; });
    mode.backward(loss);
    CHECK(values(x.grad()) == Values{6, 6});
    return Tensors{x.grad()};
  });
}
