// Cases that compiled autograd of PyTorch is known to refuse or to handle differently, as far as no scenario covers
// them: forward mode through a compiled backward, memory that .grad takes over, dropout, undefined gradients, results
// of multi-output records, several producers of a leaf. Not tested here: sparse tensors, batched gradients, views of
// another dtype (they do not exist).
#include "hook_scenario.h"

namespace retrograd::scenario {
namespace {

struct GivesNothing : Function<GivesNothing> {
  static Tensor forward(AutogradContext*, const Tensor& x, const Tensor& y) { return x * y; }
  static Tensors backward(AutogradContext*, const Tensors& g) { return {Tensor(), g[0] * 3.0}; }
};

struct ReadsTooEarly : Function<ReadsTooEarly> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    ctx->get_saved_variables();
    return x * 1.0;
  }
  static Tensors backward(AutogradContext*, const Tensors& g) { return g; }
};

}  // namespace

TEST_CASE("forward mode: the gradient that a compiled backward gives in a dual level has its tangent") {
  run_both([](Mode& mode) {
    const Tensor x = leaf({0.5, -1.5}), v = tensor({1.0, 2});
    autograd::DualLevel level;
    const Tensor dual = level.make_dual(x, v);
    const Tensor y = sum(dual * dual * dual);
    const Tensor g = mode.grad(y, dual);
    CHECK(values(g) == Values{0.75, 6.75});
    const Tensor tangent = level.tangent(g);
    REQUIRE(tangent.defined());
    CHECK(values(tangent) == Values{3, -18});  // 6 x v
    return Tensors{g, tangent};
  });
}

TEST_CASE("no copy of a gradient that nobody else has: .grad takes over its memory") {
  run_both([](Mode& mode) {
    const Tensor a = some_leaf({2000}), b = some_leaf({2000}), w = some_values({2000}), y = a + b;
    const void* seen = nullptr;
    y.register_hook([&](const Tensor& g) { return seen = g.raw_data(), Tensor(); });
    mode.backward(sum(y * w));
    CHECK(a.grad().raw_data() != b.grad().raw_data());
    CHECK((a.grad().raw_data() == seen || b.grad().raw_data() == seen));
    return Tensors{a.grad(), b.grad()};
  });
}

TEST_CASE("dropout: other masks in each step, those of the forward in the backward, one capture") {
  CompiledBackward compiled = compile_backward();
  for (int step = 0; step < 4; ++step) {
    Tensor found[2];
    for (const bool traced : {false, true}) {
      manual_seed(static_cast<uint64_t>(step));
      Mode mode(traced ? &compiled : nullptr);
      const Tensor x = full({100}, 3.0).requires_grad_(), y = dropout(x * 1.0, 0.5);
      mode.backward(sum(y));
      CHECK(values(x.grad()) == values(y / 3.0));
      found[traced] = x.grad();
    }
    CHECK(same_bits(found[0], found[1]));
  }
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("a backward that gives nothing for an argument: the records after it are skipped") {
  run_both([](Mode& mode) {
    const Tensor a = leaf({1, 2}), b = leaf({3, 4}), left = sin(a), right = cos(b);
    left.register_hook([&](const Tensor&) { return mode.log("left"), Tensor(); });
    right.register_hook([&](const Tensor&) { return mode.log("right"), Tensor(); });
    left.grad_fn().register_prehook([&](const Tensors&) { return mode.log("left pre"), Tensors{}; });
    a.register_post_accumulate_grad_hook([&](const Tensor&) { mode.log("a"); });
    b.register_post_accumulate_grad_hook([&](const Tensor&) { mode.log("b"); });
    mode.backward(sum(GivesNothing::apply(left, right)));
    CHECK(mode.events == Events{"right", "b"});
    CHECK_FALSE(a.grad().defined());
    return Tensors{b.grad()};
  });
}

TEST_CASE("a saved result keeps its number: second derivatives go to the right one") {
  run_both(
      [](Mode& mode) {
        const Tensor x = leaf({1, 2, 3, 4}), second = chunk(x, 2)[1];
        const Tensor y = sum(second * second * second);
        const Tensor g = mode.grad(y, x, true, true);
        mode.backward(sum(g));
        CHECK(values(g) == Values{0, 0, 27, 48});
        CHECK(values(x.grad()) == Values{0, 0, 18, 24});
        return Tensors{g.detach(), x.grad()};
      },
      2);
}

TEST_CASE("pack that gives a tensor with a history: gradients pass straight through the pair") {
  run_both(
      [](Mode& mode) {
        const Tensor a = leaf({1, 2}), other = leaf({1, 1});
        const auto hooks = saved_tensor_hooks(
            [&](const Tensor& t) {
              const EnableGradGuard with_gradients;
              return t * other;
            },
            [](const Tensor& t) { return t; });
        const Tensor square = a * a, cube = square * a, y = sum(cube);
        for (const Tensor& t : {square, cube})
          for (int slot : {0, 1}) t.grad_fn().register_saved_tensor_hooks(slot, hooks);
        const Tensor g = mode.grad(y, a, true, true);
        mode.backward(sum(g));
        CHECK(values(g) == Values{3, 12});
        CHECK(values(a.grad()) == Values{6, 12});
        CHECK_FALSE(other.grad().defined());
        return Tensors{g.detach(), a.grad()};
      },
      2);
}

TEST_CASE("saved tensors of a function cannot be read outside of its backward") {
  CHECK(category_of([] { ReadsTooEarly::apply(leaf({1, 2})); }) == Category::bad_argument);
}

TEST_CASE("a .grad that is another tensor of the graph is written to in place, alike in both modes") {
  run_both([](Mode& mode) {
    const Tensor x = leaf({1, 2}), y = tensor({10.0, 20});
    x.set_grad(y);
    mode.backward(sum(x * 3.0 + y));
    CHECK(values(x.grad()) == Values{13, 23});
    CHECK(values(y) == Values{13, 23});
    CHECK(x.grad().is_same(y));
    return Tensors{x.grad(), y};
  });
}

TEST_CASE("a leaf with several consumers accumulates once, and its hooks see the sum") {
  run_both([](Mode& mode) {
    const Tensor w = leaf({1, 2}), b = leaf({1, 1});
    const Tensor first = w * 2.0, second = first * w + b, third = second * w;
    for (const auto& [name, t] :
         {std::pair<const char*, Tensor>{"first", first}, {"second", second}, {"third", third}})
      t.register_hook([&mode, n = name](const Tensor&) { return mode.log(n), Tensor(); });
    w.register_hook([&](const Tensor& g) {
      mode.log("w");
      CHECK(values(g) == Values{7, 25});  // of 2 w^3 + b w
      return Tensor();
    });
    b.register_hook([&](const Tensor&) { return mode.log("b"), Tensor(); });
    w.register_post_accumulate_grad_hook([&](const Tensor&) { mode.log("post_acc w"); });
    mode.backward(sum(third));
    CHECK(mode.events == Events{"third", "second", "b", "first", "w", "post_acc w"});
    return Tensors{w.grad(), b.grad()};
  });
}

TEST_CASE("an exception of a hook has its own type; what was accumulated before stays") {
  struct Stop {};
  for (const bool traced : {false, true}) {
    CompiledBackward compiled = compile_backward();
    Mode mode(traced ? &compiled : nullptr);
    for (int i = 1; i <= 2; ++i) {
      const Tensor a = leaf({1, 2}), b = leaf({3, 4}), y = a * 2.0, z = y + b;
      y.register_hook([](const Tensor&) -> Tensor { throw Stop(); });
      CHECK_THROWS_AS(mode.backward(sum(z)), Stop);
      CHECK(values(b.grad()) == Values{1, 1});
      CHECK_FALSE(a.grad().defined());
    }
    if (traced) CHECK(compiled.stats().captures == 1);
  }
}

}  // namespace retrograd::scenario
