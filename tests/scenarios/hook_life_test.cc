// Life of gradient hooks: removal, in-place writes after registration, post-accumulate hooks, what a hook
// keeps alive, new hook objects. Not tested here: the order of hooks (hook_order_test.cc), saved-tensor hooks
// (saved_hooks_test.cc).
#include <memory>
#include <stdexcept>

#include "hook_scenario.h"

namespace retrograd::scenario {

TEST_CASE("S78 a hook removed before the backward does not run, and removing twice is fine") {
  run_both([](Mode& mode) {
    const Tensor a = leaf({1, 2}), b = a * 2.0;
    HookHandle removed = b.register_hook(times(100));
    b.register_hook(times(3));
    HookHandle node = b.grad_fn().register_prehook([](const Tensors& g) { return multiplied(g, 100); });
    HookHandle post =
        b.grad_fn().register_hook([](const Tensors& g, const Tensors&) { return multiplied(g, 100); });
    HookHandle accumulated = a.register_post_accumulate_grad_hook([](const Tensor& t) { t.grad().zero_(); });
    for (HookHandle* handle : {&removed, &node, &post, &accumulated}) {
      handle->remove();
      handle->remove();
    }
    mode.backward(sum(b));
    CHECK(values(a.grad()) == Values{6, 6});
    return Tensors{a.grad()};
  });
}

TEST_CASE("S78 a hook removed by an earlier hook of the same backward does not run") {
  run_both([](Mode& mode) {
    const Tensor a = leaf({1, 2}), b = a * 2.0;
    HookHandle later, on_leaf, accumulated;
    b.register_hook([&](const Tensor&) {
      mode.log("first");
      for (HookHandle* handle : {&later, &on_leaf, &accumulated}) handle->remove();
      return Tensor();
    });
    later = b.register_hook([&](const Tensor& g) { return mode.log("later"), g * 100.0; });
    on_leaf = a.register_hook([&](const Tensor& g) { return mode.log("leaf"), g * 100.0; });
    accumulated = a.register_post_accumulate_grad_hook([&](const Tensor&) { mode.log("accumulated"); });
    mode.backward(sum(b));
    CHECK(mode.events == Events{"first"});
    CHECK(values(a.grad()) == Values{2, 2});
    later.remove();
    return Tensors{a.grad()};
  });
}

TEST_CASE("S79 hooks before and after an in-place write see the gradient of their own version") {
  run_both([](Mode& mode) {
    const Tensor a = leaf({1}), b = clone(a);
    b.register_hook([&](const Tensor& g) {
      mode.log("first " + std::to_string(values(g)[0]));
      CHECK(values(g) == Values{4});
      return g * 2.0;
    });
    b.mul_(2.0);
    b.register_hook([&](const Tensor& g) {
      mode.log("second " + std::to_string(values(g)[0]));
      CHECK(values(g) == Values{1});
      return g * 2.0;
    });
    mode.backward(sum(b));
    CHECK(mode.events.size() == 2);
    CHECK(mode.events[0].starts_with("second"));
    CHECK(values(a.grad()) == Values{8});
    return Tensors{a.grad()};
  });
}

TEST_CASE("S80 a hook of a stale view stays with the old value: it runs only where that one is used") {
  run_both([](Mode& mode) {
    const Tensor start = leaf({1}), base = clone(start), view = base.narrow(0, 0, 1),
                 view2 = base.narrow(0, 0, 1);
    const auto log = [&mode](const char* name) {
      return [&mode, name](const Tensor& g) {
        mode.log(std::string(name) + " " + std::to_string(static_cast<int>(values(g)[0])));
        return Tensor();
      };
    };
    view.register_hook(log("view, old"));    // what mul_ multiplied
    view2.register_hook(log("view2, old"));  // used by nothing
    view.mul_(2.0);
    view2.register_hook(log("view2, new"));
    mode.backward(sum(view + view2));
    CHECK(mode.events == Events{"view2, new 1", "view, old 4"});
    CHECK(values(start.grad()) == Values{4});
    return Tensors{start.grad()};
  });
}

TEST_CASE("S82 a post-accumulate hook is for leaves only") {
  const Tensor a = leaf({1, 2}), b = a * 2.0;
  std::string text;
  CHECK(category_of([&] { b.register_post_accumulate_grad_hook([](const Tensor&) {}); }, &text) ==
        Category::hook_forbidden);
  CHECK(text.find("leaf") != std::string::npos);
  CHECK(category_of([&] {
          tensor({1.0, 2}).register_post_accumulate_grad_hook([](const Tensor&) {});
        }) == Category::hook_forbidden);
  // A value as an answer does not compile into another result: the hook's type is void(const Tensor&).
  static_assert(
      std::is_same_v<decltype(std::declval<Hook>().post_accumulate), std::function<void(const Tensor&)>>);
}

TEST_CASE("S82 two post-accumulate hooks run in order and change .grad") {
  run_both([](Mode& mode) {
    const Tensor a = leaf({1, 2, 3});
    a.register_post_accumulate_grad_hook([](const Tensor& t) { t.grad().add_(ones({3}), -1); });
    a.register_post_accumulate_grad_hook([](const Tensor& t) { t.grad().mul_(4.0); });
    mode.backward(sum(a * a));
    CHECK(values(a.grad()) == Values{4, 12, 20});  // 4 * (2a - 1)
    return Tensors{a.grad()};
  });
}

TEST_CASE("S83 an optimizer that steps in post-accumulate hooks ends where a separate step ends") {
  const auto train = [](Mode& mode, bool in_hook) {
    const Tensor x = some_values({4, 3}), w1 = some_leaf({3, 5}), w2 = some_leaf({5, 2});
    const auto step = [](const Tensor& w) {
      const NoGradGuard no_grad;
      w.add_(w.grad(), -0.05);
      w.set_grad({});
    };
    if (in_hook)
      for (const Tensor& w : {w1, w2}) w.register_post_accumulate_grad_hook(step);
    for (int i = 0; i < 5; ++i) {
      const Tensor y = mm(relu(mm(x, w1)), w2);
      mode.backward(sum(y * y));
      if (!in_hook)
        for (const Tensor& w : {w1, w2}) step(w);
      CHECK_FALSE(w1.grad().defined());
    }
    return Tensors{w1, w2};
  };
  Mode eager(nullptr);
  const Tensors separate = train(eager, false);
  const Tensors start{some_values({3, 5}), some_values({5, 2})};
  CHECK_FALSE(same_bits(separate[0], start[0]));
  const auto stats = run_both([&](Mode& mode) {
    const Tensors in_hook = train(mode, true);
    for (size_t i = 0; i < 2; ++i) REQUIRE(same_bits(in_hook[i], separate[i]));
    return in_hook;
  });
  CHECK(stats.hits == 3 * 5 - 1);
}

TEST_CASE("S84 what a post-accumulate hook captured is freed with its tensor") {
  run_both([](Mode& mode) {
    std::weak_ptr<int> seen;
    {
      const Tensor a = leaf({1, 2});
      const auto state = std::make_shared<int>(0);
      seen = state;
      a.register_post_accumulate_grad_hook([state](const Tensor&) { ++*state; });
      mode.backward(sum(a * 2.0));
      CHECK(*state == 1);
    }
    CHECK(seen.expired());  // a captured graph does not keep hooks of earlier runs either
    return Tensors{};
  });
}

TEST_CASE("S85 backward(inputs = {b}) does not touch a: its hooks, which throw, are not called") {
  run_both([](Mode& mode) {
    const Tensor a = leaf({1, 2}), b = leaf({3, 4});
    a.register_hook([](const Tensor&) -> Tensor { throw std::logic_error("hook of a"); });
    a.register_post_accumulate_grad_hook(
        [](const Tensor&) { throw std::logic_error("post-accumulate hook of a"); });
    const Tensor c = a * b;
    mode.backward_into(sum(c), {b});
    CHECK_FALSE(a.grad().defined());
    CHECK(values(b.grad()) == Values{1, 2});
    return Tensors{b.grad()};
  });
}

TEST_CASE("S85 the same hooks do throw, with their own type, when a is among the inputs") {
  for (const bool traced : {false, true}) {
    CompiledBackward compiled = compile_backward();
    Mode mode(traced ? &compiled : nullptr);
    const Tensor a = leaf({1, 2}), b = leaf({3, 4});
    a.register_hook([](const Tensor&) -> Tensor { throw std::logic_error("hook of a"); });
    CHECK_THROWS_AS(mode.backward_into(sum(a * b), {a, b}), std::logic_error);
  }
}

TEST_CASE("S89 a new hook object in each step needs no new capture") {
  CompiledBackward compiled = compile_backward();
  for (int step = 1; step <= 6; ++step) {
    Values found[2];
    for (const bool traced : {false, true}) {
      Mode mode(traced ? &compiled : nullptr);
      const Tensor a = leaf({1, 2}), b = a * 2.0;
      const double factor = step;
      const Tensor shift = full({2}, 1.0 * step);
      b.register_hook([factor](const Tensor& g) { return g * factor; });
      b.grad_fn().register_prehook([shift](const Tensors& g) { return Tensors{g[0] + shift}; });
      b.grad_fn().register_hook([=](const Tensors& g, const Tensors&) {
        return Tensors{g[0] - shift * factor, Tensor()};
      });
      a.register_post_accumulate_grad_hook([=](const Tensor& t) { t.grad().mul_(factor); });
      mode.backward(sum(b));
      found[traced] = values(a.grad());
      const double expected = ((1 * factor + step) * 2 - step * factor) * factor;
      CHECK(found[traced] == Values{expected, expected});
    }
    CHECK(found[0] == found[1]);
  }
  CHECK(compiled.stats().captures == 1);
  CHECK(compiled.stats().hits == 5);
}

TEST_CASE("S89 a hook of another kind at the same tensor is another structure") {
  CompiledBackward compiled = compile_backward();
  for (int round = 0; round < 2; ++round)
    for (const int kind : {0, 1, 2, 3}) {
      const Tensor a = leaf({1, 2}), b = a * 2.0;
      int calls = 0;
      if (kind == 0) b.register_hook([&](const Tensor&) { return ++calls, Tensor(); });
      if (kind == 1) b.grad_fn().register_prehook([&](const Tensors&) { return ++calls, Tensors{}; });
      if (kind == 2)
        b.grad_fn().register_hook([&](const Tensors&, const Tensors&) { return ++calls, Tensors{}; });
      if (kind == 3) a.register_post_accumulate_grad_hook([&](const Tensor&) { ++calls; });
      compiled(sum(b));
      CHECK(calls == 1);
      CHECK(values(a.grad()) == Values{2, 2});
    }
  CHECK(compiled.stats().captures == 4);
}

TEST_CASE("a hook that captures its own tensor goes when it is removed, by whom it may be") {
  const int64_t before = memory::stats().live_tensors;
  for (const bool by_itself : {false, true}) {
    const Tensor x = leaf({1, 2}), y = x * x;
    auto handle = std::make_shared<HookHandle>();
    std::weak_ptr<int> life;
    {
      const auto captured = std::make_shared<int>(0);
      life = captured;
      *handle = y.register_hook([y, captured, handle, by_itself](const Tensor& g) {
        if (by_itself) {
          handle->remove();
          CHECK(*captured == 0);  // still there: it runs
          CHECK(y.defined());
        }
        return g;
      });
    }
    sum(y).backward();
    CHECK(life.expired() == by_itself);
    handle->remove();
    CHECK(life.expired());
    *handle = HookHandle();
  }
  CHECK(memory::stats().live_tensors == before);
}

}  // namespace retrograd::scenario
