// Hooks at the accumulation into a leaf: a pre-hook sees and replaces the gradient, a post-hook sees what was
// accumulated. Order at a leaf: tensor hooks, pre-hooks, accumulation, post-accumulate hooks, post-hooks. Not tested
// here: the other hooks (hook_order_test.cc).
#include "hook_scenario.h"

namespace retrograd::scenario {

TEST_CASE("S68 tensor hooks of a leaf come before its pre-hooks; grad() runs the former only") {
  run_both(
      [](Mode& mode) {
        const auto one = [&](const Tensor&) { return mode.log("1"), Tensor(); };
        const auto two = [&](const Tensors&) { return mode.log("2"), Tensors{}; };
        const Tensor a = scalar_leaf(1), b = clone(a);
        b.grad_fn().register_prehook(two);
        b.register_hook(one);
        b.grad_fn().register_prehook(two);
        a.register_hook(one);
        a.register_accumulate_grad_prehook(two);
        a.register_hook(one);
        mode.backward(sum(b), true);
        CHECK(mode.take_events() == Events{"1", "2", "2", "1", "1", "2"});
        mode.grad(sum(b), a, true);
        CHECK(mode.take_events() == Events{"1", "2", "2", "1", "1"});
        return Tensors{a.grad()};
      },
      2);
}

TEST_CASE("S71 calls of tensor hooks, pre-hooks and post-hooks on a non-leaf and on its leaf") {
  struct Counted {
    bool by_grad;
    bool both;
    const char* expected;
  };
  for (const Counted& c : {Counted{true, false, "1 0 0"},
                           {true, true, "2 1 1"},
                           {false, false, "2 2 2"},
                           {false, true, "2 2 2"}})
    run_both([&c](Mode& mode) {
      int tensor_hooks = 0, pre_hooks = 0, post_hooks = 0;
      const auto tensor_hook = [&](const Tensor&) { return ++tensor_hooks, Tensor(); };
      const auto pre = [&](const Tensors&) { return ++pre_hooks, Tensors{}; };
      const auto post = [&](const Tensors&, const Tensors&) { return ++post_hooks, Tensors{}; };
      const Tensor a = scalar_leaf(1), b = clone(a), loss = clone(b);
      a.register_hook(tensor_hook);
      b.register_hook(tensor_hook);
      a.register_accumulate_grad_prehook(pre);
      b.grad_fn().register_prehook(pre);
      a.register_accumulate_grad_posthook(post);
      b.grad_fn().register_hook(post);
      if (c.by_grad)
        mode.grad(Tensors{loss}, c.both ? Tensors{a, b} : Tensors{b});
      else if (c.both)
        mode.backward_into(loss, {a, b});
      else
        mode.backward(loss);
      mode.log(std::to_string(tensor_hooks) + " " + std::to_string(pre_hooks) + " " +
               std::to_string(post_hooks));
      CHECK(mode.events == Events{c.expected});
      return Tensors{};
    });
}

TEST_CASE("S72 ((1 - 2) / 5 + 0.5) * 10 is 3: .grad takes over the gradient that the post-hook sees") {
  run_both([](Mode& mode) {
    const Tensor x = tensor({2}, {kFloat64, kCPU, true});
    x.register_hook([](const Tensor& g) { return g - 2.0; });
    x.register_accumulate_grad_prehook([](const Tensors& g) { return Tensors{g[0] / 5.0}; });
    x.register_post_accumulate_grad_hook([](const Tensor& t) { t.grad().add_(full({1}, 0.5, {kFloat64})); });
    x.register_accumulate_grad_posthook([&](const Tensors& grad_inputs, const Tensors& grad_outputs) {
      CHECK(grad_inputs.empty());
      REQUIRE(grad_outputs.size() == 1);
      x.set_grad(grad_outputs[0] * 10.0);
      return Tensors{};
    });
    mode.backward(sum(x));
    CHECK(values(x.grad())[0] == Approx(3).epsilon(1e-12));
    return Tensors{x.grad()};
  });
}

TEST_CASE("S73 all four kinds on two weights, one or two of each, in order of registration") {
  for (const bool two_of_each : {false, true})
    run_both([two_of_each](Mode& mode) {
      const Tensor w1 = some_leaf({3, 4}), w2 = some_leaf({4, 2}), x = some_values({5, 3});
      const auto loss = [&] { return sum(mm(mm(x, w1), w2)); };
      const Tensors plain = autograd::grad({loss()}, {w1, w2});
      for (const Tensor* leaf : {&w1, &w2}) {  // a pointer: a hook that held its leaf would keep it alive
        const Tensor& w = *leaf;
        w.register_accumulate_grad_posthook(
            [leaf](const Tensors&, const Tensors&) { return leaf->grad().mul_(0.5), Tensors{}; });
        w.register_post_accumulate_grad_hook([](const Tensor& t) { t.set_grad(t.grad() + 3.0); });
        w.register_accumulate_grad_prehook([](const Tensors& g) { return Tensors{g[0] / 5.0}; });
        w.register_hook([](const Tensor& g) { return g - 2.0; });
        if (!two_of_each) continue;
        w.register_accumulate_grad_posthook(
            [leaf](const Tensors&, const Tensors&) { return leaf->set_grad(leaf->grad() - 0.3), Tensors{}; });
        w.register_post_accumulate_grad_hook([](const Tensor& t) { t.grad().mul_(2.0); });
        w.register_accumulate_grad_prehook([](const Tensors& g) { return Tensors{g[0] - 0.3}; });
        w.register_hook(times(0.5));
      }
      mode.backward(loss());
      for (const auto& [w, g] : {std::pair{w1, plain[0]}, {w2, plain[1]}}) {
        const Tensor expected = two_of_each ? (((g - 2.0) * 0.5 / 5.0 - 0.3) + 3.0) * 2.0 * 0.5 - 0.3
                                            : ((g - 2.0) / 5.0 + 3.0) * 0.5;
        CHECK(same_bits(w.grad(), expected));
      }
      return Tensors{w1.grad(), w2.grad()};
    });
}

TEST_CASE("S76 hooks of sum, mm and t, then at the weight: tensor hook, pre, post-accumulate, post") {
  run_both([](Mode& mode) {
    const Tensor x = some_values({2, 3}), w = some_leaf({4, 3}), turned = t(w), y = mm(x, turned),
                 loss = sum(y);
    for (const auto& [name, node] : {std::pair<std::string, Node>{"sum", loss.grad_fn()},
                                     {"mm", y.grad_fn()},
                                     {"t", turned.grad_fn()}}) {
      node.register_prehook([&mode, n = name](const Tensors&) { return mode.log(n + " pre"), Tensors{}; });
      node.register_hook(
          [&mode, n = name](const Tensors&, const Tensors&) { return mode.log(n + " post"), Tensors{}; });
    }
    w.register_accumulate_grad_posthook(
        [&](const Tensors&, const Tensors&) { return mode.log("acc post"), Tensors{}; });
    w.register_post_accumulate_grad_hook([&](const Tensor&) { mode.log("post_acc"); });
    w.register_accumulate_grad_prehook([&](const Tensors&) { return mode.log("acc pre"), Tensors{}; });
    w.register_hook([&](const Tensor&) { return mode.log("w"), Tensor(); });
    mode.backward(loss);
    CHECK(mode.events == Events{"sum pre", "sum post", "mm pre", "mm post", "t pre", "t post", "w", "acc pre",
                                "post_acc", "acc post"});
    return Tensors{w.grad()};
  });
}

TEST_CASE("S89 one hook of another kind at the same leaf is another structure") {
  CompiledBackward compiled = compile_backward();
  for (int round = 0; round < 2; ++round)
    for (const int kind : {0, 1, 2, 3}) {
      const Tensor a = leaf({1, 2});
      int calls = 0;
      if (kind == 0) a.register_hook([&](const Tensor&) { return ++calls, Tensor(); });
      if (kind == 1) a.register_accumulate_grad_prehook([&](const Tensors&) { return ++calls, Tensors{}; });
      if (kind == 2)
        a.register_accumulate_grad_posthook(
            [&](const Tensors&, const Tensors&) { return ++calls, Tensors{}; });
      if (kind == 3) a.register_post_accumulate_grad_hook([&](const Tensor&) { ++calls; });
      compiled(sum(a * 2.0));
      CHECK(calls == 1);
      CHECK(values(a.grad()) == Values{2, 2});
    }
  CHECK(compiled.stats().captures == 4);
}

}  // namespace retrograd::scenario
