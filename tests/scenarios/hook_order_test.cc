// Gradient hooks: their relative order, what each of them sees and replaces, which of them run for inputs and grad().
// Not tested here: hooks at the accumulation (accumulate_grad_hooks_test.cc), life and removal (hook_life_test.cc),
// gradients of several tensors (multi_grad_test.cc).
#include <cmath>

#include "hook_scenario.h"

namespace retrograd::scenario {
TEST_CASE("S67 a post-hook on the node of a sum gives sin(grad_input) + grad_output") {
  run_both([](Mode& mode) {
    const Tensor x = some_leaf({3, 4});
    const Tensor loss = sum(x * 1.0);
    loss.grad_fn().register_hook([](const Tensors& grad_inputs, const Tensors& grad_outputs) {
      return Tensors{sin(grad_inputs[0]) + grad_outputs[0]};
    });
    mode.backward(loss);
    CHECK(value(x.grad().select(0, 0).select(0, 0)) == Approx(std::sin(1.0) + 1));
    return Tensors{x.grad()};
  });
}

TEST_CASE("S68 tensor hooks come before node pre-hooks, whatever was registered first") {
  run_both(
      [](Mode& mode) {
        const auto triple = [&](const Tensor& g) {
          mode.log("1");
          return g * 3.0;
        };
        const auto twice = [&](const Tensors& g) {
          mode.log("2");
          return multiplied(g, 2);
        };
        const Tensor a = scalar_leaf(1), b = clone(a);
        b.grad_fn().register_prehook(twice);
        b.register_hook(triple);
        b.grad_fn().register_prehook(twice);
        a.register_hook(triple);
        a.register_hook(triple);
        mode.backward(sum(b), true);
        CHECK(mode.take_events() == Events{"1", "2", "2", "1", "1"});
        const Tensor g = mode.grad(sum(b), a, true);
        CHECK(mode.take_events() == Events{"1", "2", "2", "1", "1"});
        CHECK(value(a.grad()) == 108);
        return Tensors{a.grad(), g};
      },
      2);
}

TEST_CASE("S68 backward(inputs = {b}) runs the pre-hooks of b's node and keeps what its tensor hooks left") {
  run_both([](Mode& mode) {
    const Tensor a = scalar_leaf(1), b = clone(a);
    b.grad_fn().register_prehook([&](const Tensors& g) { return mode.log("2"), multiplied(g, 2); });
    b.register_hook([&](const Tensor& g) { return mode.log("1"), g * 3.0; });
    b.grad_fn().register_prehook([&](const Tensors& g) { return mode.log("2"), multiplied(g, 2); });
    a.register_hook([&](const Tensor&) { return mode.log("a"), Tensor(); });
    mode.backward_into(sum(b), {b});
    CHECK(mode.events == Events{"1", "2", "2"});
    CHECK(value(b.grad()) == 3);
    CHECK_FALSE(a.grad().defined());
    return Tensors{b.grad()};
  });
}

TEST_CASE("S69 retain_grad keeps what all tensor hooks left, whenever they were registered") {
  for (const int hooks_before : {0, 1})
    run_both([hooks_before](Mode& mode) {
      const Tensor a = scalar_leaf(1), b = clone(a);
      if (hooks_before) b.register_hook(times(2));
      b.retain_grad();
      b.register_hook(times(2));
      mode.backward(clone(b));
      CHECK(value(b.grad()) == (hooks_before ? 4 : 2));
      CHECK(value(a.grad()) == (hooks_before ? 4 : 2));
      return Tensors{a.grad(), b.grad()};
    });
}

TEST_CASE("S70 retain_grad may be called twice, accumulates, and does nothing on leaves") {
  run_both([](Mode& mode) {
    const Tensor input = some_leaf({1, 3}), h1 = input * 3.0;
    const Tensor out = sum(h1 * h1);
    h1.retain_grad();
    h1.retain_grad();
    mode.backward(out, true);
    CHECK(same_bits(h1.grad(), h1 * 2.0));
    mode.backward(out, true);
    CHECK(values(h1.grad()) == values(h1 * 4.0));
    input.grad().zero_();
    input.retain_grad();
    input.retain_grad();
    mode.backward(out);
    CHECK(values(input.grad())[1] == Approx(18 * 0.2));
    return Tensors{h1.grad(), input.grad()};
  });
}

TEST_CASE("S70 a tensor with retain_grad may die before the backward, and nothing stays alive") {
  const int64_t before = memory::stats().live_tensors;
  run_both([](Mode& mode) {
    const Tensor a = some_leaf({4});
    Tensor loss;
    {
      const Tensor h = a * 2.0;
      h.retain_grad();
      loss = sum(h * h);
    }
    mode.backward(loss);
    return Tensors{a.grad()};
  });
  {
    const Tensor h = some_leaf({4}) * 2.0;  // never differentiated: no cycle of tensor, record and box
    h.retain_grad();
  }
  CHECK(memory::stats().live_tensors == before);
}

TEST_CASE("S71 tensor hooks run where a gradient is taken, pre- and post-hooks only where the rule runs") {
  struct Counted {
    std::optional<bool> to_both;  // grad() of c by b, or by a and b
    bool accumulate;
    std::string expected;  // calls of tensor hooks, pre-hooks, post-hooks
  };
  const Counted cases[] = {
      {false, false, "1 0 0"}, {true, false, "2 1 1"}, {std::nullopt, true, "2 1 1"}, {true, true, "2 1 1"}};
  for (const Counted& c : cases)
    run_both([&c](Mode& mode) {
      int tensor_hooks = 0, pre_hooks = 0, post_hooks = 0;
      const auto count = [&](const Tensor&) { return ++tensor_hooks, Tensor(); };
      const Tensor a = scalar_leaf(1), b = a * a;
      a.register_hook(count);
      b.register_hook(count);
      b.grad_fn().register_prehook([&](const Tensors&) { return ++pre_hooks, Tensors{}; });
      b.grad_fn().register_hook([&](const Tensors&, const Tensors&) { return ++post_hooks, Tensors{}; });
      const Tensor loss = b * 2.0;
      Tensors found;
      if (!c.to_both)
        mode.backward(loss);
      else if (c.accumulate)
        mode.backward_into(loss, {a, b});
      else
        found = mode.grad(Tensors{loss}, *c.to_both ? Tensors{a, b} : Tensors{b});
      mode.log(std::to_string(tensor_hooks) + " " + std::to_string(pre_hooks) + " " +
               std::to_string(post_hooks));
      CHECK(mode.events == Events{c.expected});
      return found;
    });
}

TEST_CASE("S74 post-hooks replace gradients: of tanh by twice grad_output, of sigmoid by twice grad_input") {
  run_both([](Mode& mode) {
    const Tensor x = some_leaf({5}), y = sigmoid(x), z = tanh(y);
    z.grad_fn().register_hook(
        [](const Tensors&, const Tensors& grad_outputs) { return multiplied(grad_outputs, 2); });
    y.grad_fn().register_hook(
        [](const Tensors& grad_inputs, const Tensors&) { return multiplied(grad_inputs, 2); });
    mode.backward(sum(z));
    const Tensor expected = y * (1.0 - y) * 4.0;
    for (size_t i = 0; i < 5; ++i) CHECK(values(x.grad())[i] == Approx(values(expected)[i]).epsilon(1e-6));
    return Tensors{x.grad()};
  });
}

TEST_CASE("S75 a post-hook of a product doubles the gradient of the weight only") {
  run_both([](Mode& mode) {
    const Tensor x = some_leaf({2, 3}), w = some_leaf({3, 2});
    const Tensor plain_x = mm(ones({2, 2}), t(w)).detach(), plain_w = mm(t(x), ones({2, 2})).detach();
    const Tensor y = mm(x, w);
    y.grad_fn().register_hook([](const Tensors& grad_inputs, const Tensors&) {
      return Tensors{Tensor(), grad_inputs[1] * 2.0};  // undefined: kept
    });
    mode.backward(sum(y));
    CHECK(values(x.grad()) == values(plain_x));
    CHECK(values(w.grad()) == values(plain_w * 2.0));
    return Tensors{x.grad(), w.grad()};
  });
}

TEST_CASE("S76 pre- and post-hooks of all nodes and the hooks of the weight have one order") {
  run_both([](Mode& mode) {
    const Tensor x = some_values({2, 3}), w = some_leaf({4, 3});
    const Tensor turned = t(w), y = mm(x, turned), loss = sum(y);
    for (const auto& [name, node] : {std::pair<std::string, Node>{"sum", loss.grad_fn()},
                                     {"mm", y.grad_fn()},
                                     {"t", turned.grad_fn()}}) {
      node.register_prehook([&mode, n = name](const Tensors&) { return mode.log(n + " pre"), Tensors{}; });
      node.register_hook(
          [&mode, n = name](const Tensors&, const Tensors&) { return mode.log(n + " post"), Tensors{}; });
    }
    w.register_hook([&](const Tensor&) { return mode.log("w"), Tensor(); });
    w.register_post_accumulate_grad_hook([&](const Tensor&) { mode.log("post_acc w"); });
    mode.backward(loss);
    CHECK(mode.events ==
          Events{"sum pre", "sum post", "mm pre", "mm post", "t pre", "t post", "w", "post_acc w"});
    return Tensors{w.grad()};
  });
}

TEST_CASE("S77 three doubling pre-hooks among some that change nothing; post-hooks see 8 and 16") {
  run_both([](Mode& mode) {
    const Tensor x = leaf({1, 1}), y = x * 2.0;
    const Node node = y.grad_fn();
    node.register_prehook([](const Tensors& g) { return multiplied(g, 2); });
    node.register_prehook([](const Tensors&) { return Tensors{}; });
    node.register_prehook([](const Tensors& g) { return multiplied(g, 2); });
    node.register_prehook([](const Tensors& g) { return g; });
    node.register_prehook([](const Tensors& g) { return multiplied(g, 2); });
    for (int i = 0; i < 2; ++i)
      node.register_hook([&mode](const Tensors& grad_inputs, const Tensors& grad_outputs) {
        mode.log(to_string(grad_outputs[0]) + " " + to_string(grad_inputs[0]));
        CHECK(values(grad_outputs[0]) == Values{8, 8});
        CHECK(values(grad_inputs[0]) == Values{16, 16});
        return Tensors{};
      });
    mode.backward(sum(y));
    CHECK(mode.events.size() == 2);
    CHECK(values(x.grad()) == Values{16, 16});
    return Tensors{x.grad()};
  });
}

namespace {

struct DoubleTwice : Function<DoubleTwice> {
  static Tensors forward(AutogradContext* ctx, const Tensor& x, bool zeros) {
    ctx->set_materialize_grads(zeros);
    return {x * 2.0, x * 2.0};
  }
  static Tensors backward(AutogradContext*, const Tensors& g) {
    if (!g[1].defined()) return {g[0] * 2.0, {}};
    return {g[0] * 2.0 + g[1] * 2.0, {}};
  }
};

}  // namespace

TEST_CASE("S81 hooks on the results of one node see the gradients of their own result") {
  run_both([](Mode& mode) {
    const Tensor a = leaf({1, 1, 1});
    const Tensors out = DoubleTwice::apply(a, true);
    const Tensor b = out[0], c = out[1];
    const auto log = [&mode](const Tensor& g) {
      return mode.log(std::to_string(static_cast<int>(values(g)[0]))), Tensor();
    };
    b.register_hook(log);
    c.register_hook(log);
    b.mul_(2.0);
    b.register_hook(log);
    mode.backward(sum(b + c * 3.0));
    CHECK(mode.events == Events{"1", "2", "3"});
    CHECK(values(a.grad()) == Values{10, 10, 10});
    return Tensors{a.grad()};
  });
}

TEST_CASE("S81 an unused result of a function: its tensor hooks and pre-hooks see no gradient") {
  run_both([](Mode& mode) {
    const Tensor a = leaf({1, 1});
    const Tensors out = DoubleTwice::apply(a, false);
    out[1].register_hook([&](const Tensor& g) { mode.log(g.defined() ? "used" : "unused"); });
    out[0].grad_fn().register_prehook([&](const Tensors& g) {
      mode.log(std::string(g[0].defined() ? "T" : "F") + (g[1].defined() ? "T" : "F"));
      return Tensors{};
    });
    mode.backward(sum(out[0]));
    CHECK(mode.events == Events{"unused", "TF"});
    CHECK(values(a.grad()) == Values{2, 2});
    return Tensors{a.grad()};
  });
}

}  // namespace retrograd::scenario
