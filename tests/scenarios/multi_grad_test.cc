// Hooks on the gradients of several tensors: when they are called, how often, with which of the gradients.
// Not tested here: hooks on one tensor (hook_order_test.cc, hook_life_test.cc).
#include <stdexcept>

#include "hook_scenario.h"

namespace retrograd::scenario {
namespace {

struct Refuses : Function<Refuses> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 1.0; }
  static Tensors backward(AutogradContext*, const Tensors&) { throw std::domain_error("refused"); }
};

std::string reached(const Tensors& grads) {
  std::string text;
  for (const Tensor& g : grads) text += g.defined() ? 'T' : 'F';
  return text;
}

}  // namespace

TEST_CASE("S86 an all-mode hook is called once per backward, with the gradients that it reached") {
  run_both(
      [](Mode& mode) {
        const Tensor l1 = some_leaf({2}), l2 = some_leaf({2}), l4 = some_leaf({2, 2});
        const Tensor t1 = l1 * 2.0, t2 = l2 * 2.0, t3 = some_leaf({2}), t4 = l4.select(0, 0);
        HookHandle handle = autograd::register_multi_grad_hook(
            {t1, t2, t3, t4}, [&](const Tensors& g) { mode.log(reached(g)); });
        const Tensor out = t2 * t3;
        mode.backward_into(sum(out), {t2, t3}, true);
        CHECK(mode.take_events() == Events{"FTTF"});
        mode.grad(Tensors{sum(out)}, {t1, t4}, {}, true, false, true);  // none of them is reached
        CHECK(mode.take_events().empty());
        mode.backward_into(sum(out), {t1, t3}, true);
        CHECK(mode.take_events() == Events{"FFTF"});
        CHECK_THROWS_AS(mode.backward_into(sum(Refuses::apply(out)), {t2, t3}, true), std::domain_error);
        CHECK(mode.take_events().empty());
        handle.remove();
        mode.backward_into(sum(out), {t2, t3}, true);
        CHECK(mode.take_events().empty());
        return Tensors{t2.grad(), t3.grad()};
      },
      5);
}

TEST_CASE("S86 an all-mode hook gets the gradients that the tensor hooks before it left") {
  run_both([](Mode& mode) {
    const Tensor a = leaf({1, 2}), b = leaf({3, 4});
    a.register_hook(times(2));
    autograd::register_multi_grad_hook({a, b}, [&](const Tensors& g) {
      mode.log("both");
      CHECK(values(g[0]) == Values{6, 8});
      CHECK(values(g[1]) == Values{1, 2});
    });
    mode.backward(sum(a * b));
    CHECK(mode.events == Events{"both"});
    return Tensors{a.grad(), b.grad()};
  });
}

TEST_CASE("S87 any-mode hooks are called at the first gradient, in the order of the backward: 3 2 1 0") {
  run_both([](Mode& mode) {
    const Tensor t0 = some_leaf({2}), other = some_leaf({2}), t1 = t0 * 2.0, t2 = sin(t1), t3 = t2 * other;
    const Tensors chain{t0, t1, t2, t3};
    for (size_t i = 0; i < chain.size(); ++i)
      autograd::register_multi_grad_hook(
          {chain[i], chain[0]},
          [&mode, i](const Tensors& g) {
            CHECK(g.size() == 1);
            mode.log(std::to_string(i));
          },
          autograd::MultiGradMode::any);
    mode.backward(sum(t3));
    CHECK(mode.events == Events{"3", "2", "1", "0"});
    return Tensors{t0.grad()};
  });
}

TEST_CASE("S87 an any-mode hook is called once in each backward") {
  run_both(
      [](Mode& mode) {
        const Tensor a = some_leaf({2}), b = some_leaf({2});
        HookHandle handle = autograd::register_multi_grad_hook(
            {a, b}, [&](const Tensors&) { mode.log("any"); }, autograd::MultiGradMode::any);
        mode.backward(sum(a * b));
        mode.backward(sum(a * b));
        CHECK(mode.take_events() == Events{"any", "any"});
        handle.remove();
        mode.backward(sum(a * b));
        CHECK(mode.take_events().empty());
        return Tensors{a.grad(), b.grad()};
      },
      2);
}

TEST_CASE("what a hook has seen goes with a recorded backward that fails before the hook is called") {
  const int64_t before = memory::stats().live_tensors;
  {
    const Tensor x = leaf({1, 2}), y = exp(x);
    sum(y).backward();
    x.set_grad({});
    autograd::register_multi_grad_hook({x, y}, [](const Tensors&) { FAIL("called"); });
    const Tensor z = sin(y);
    CHECK(category_of([&] { sum(z).backward({}, {}, true); }) == Category::backward_twice_freed);
  }
  CHECK(memory::stats().live_tensors == before);
}

}  // namespace retrograd::scenario
