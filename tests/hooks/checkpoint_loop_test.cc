// checkpoint_loop: gradients of the plain loop, executed steps, memory, states in a file, modes.
// What it refuses is in checkpoint_loop_errors_test.cc.
#include "hooks/checkpoint_loop.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/hooks/loops.h"
#include "tests/hooks/regions.h"

namespace rg = retrograd;
using rg::category_of;
using rg::Tensor;
using rg::Tensors;
using rg::testing::in_modes;
using rg::testing::kLoopWidth;
using rg::testing::largest;
using rg::testing::live;
using rg::testing::LoopCounts;
using rg::testing::LoopModel;
using rg::testing::same;
using rg::testing::same_bits;
using rg::testing::shifted_wave;

TEST_CASE("a loop has the values and gradients of the plain loop, in the steps that the schedule costs") {
  in_modes([](const auto& backward) {
    const LoopModel model;
    for (const int64_t n : {0, 1, 2, 3, 5, 12, 40, 100})
      for (const int64_t slots : {1, 2, 5, 12, 200}) {
        CAPTURE(n, slots);
        const Tensor want = model.plain(n);
        rg::sum(want * want).backward();
        const Tensors want_grads = model.take_grads();
        const LoopCounts steps;
        const Tensor got =
            rg::checkpoint_loop(n, model.body(), model.start, {.slots = slots, .parameters = {model.w}});
        CHECK(same_bits(got, want));
        backward(rg::sum(got * got));
        CHECK(steps.executed() == rg::checkpoint_loop_steps(n, slots));
        CHECK(steps.reversed() == n);
        const Tensors grads = model.take_grads();
        CHECK(same_bits(grads[0], want_grads[0]));
        if (n > 0) CHECK(same_bits(grads[1], want_grads[1]));
      }
  });
}

TEST_CASE("a loop of unknown length takes little more") {
  in_modes([](const auto& backward) {
    const LoopModel model;
    for (const int64_t n : {0, 1, 2, 3, 7, 30, 100})
      for (const int64_t slots : {1, 3, 5, 20}) {
        CAPTURE(n, slots);
        const Tensor want = model.plain(n);
        rg::sum(want * want).backward();
        const Tensors want_grads = model.take_grads();
        const LoopCounts steps;
        int64_t asked = 0;
        const auto more = [&](const Tensor&, int64_t step) {
          ++asked;
          return step < n;
        };
        const Tensor got =
            rg::checkpoint_while(more, model.body(), model.start, {.slots = slots, .parameters = {model.w}});
        CHECK(same_bits(got, want));
        backward(rg::sum(got * got));
        CHECK(asked == n + 1);
        CHECK(static_cast<double>(steps.executed()) <=
              1.15 * static_cast<double>(rg::checkpoint_loop_steps(n, slots)));
        const Tensors grads = model.take_grads();
        CHECK(same_bits(grads[0], want_grads[0]));
        if (n > 0) CHECK(same_bits(grads[1], want_grads[1]));
      }
  });
}

TEST_CASE("the online schedule at the lengths of the published figures") {
  for (const auto& [n, slots] :
       std::vector<std::pair<int64_t, int64_t>>{{100, 5}, {1000, 20}, {1000, 40}, {10000, 20}}) {
    const Tensor start = rg::ones({2}).requires_grad_();
    const LoopCounts steps;
    const auto more = [n = n](const Tensor&, int64_t step) { return step < n; };
    const Tensor end =
        rg::checkpoint_while(more, [](const Tensor& u) { return u * 0.999; }, start, {.slots = slots});
    rg::sum(end).backward();
    CAPTURE(n, slots);
    CHECK(static_cast<double>(steps.executed()) <=
          1.05 * static_cast<double>(rg::checkpoint_loop_steps(n, slots)));
    CHECK(start.grad().to_vector()[0] == Approx(std::pow(0.999, static_cast<double>(n))).epsilon(1e-3));
  }
}

TEST_CASE("memory: the slots and a step") {
  const int64_t n = 200, slots = 6, size = 1000;
  const Tensor start = shifted_wave(size).requires_grad_();
  const auto body = [](const Tensor& u) { return rg::sin(rg::sin(u)); };  // saves two tensors
  const int64_t bytes = start.nbytes(), before = live();
  rg::memory::reset_peak();
  Tensor end = rg::checkpoint_loop(n, body, start, {.slots = slots});
  CHECK(live() - before <= (2 * slots + 3) * bytes);
  end.backward(rg::ones_like(end));
  // A slot has at most a recorded step with two saved tensors, one of which is the state before it. At hand: a step with
  // its result, and the gradients of a rule's result, operand and rows between.
  CHECK(rg::memory::stats().peak_bytes - before <= (2 * slots + 8) * bytes);
  end.reset();
  CHECK(live() == before + bytes);  // the gradient
  start.set_grad({});
  {
    const Tensor unused = rg::checkpoint_loop(n, body, start, {.slots = slots});
    CHECK(live() > before);
  }
  CHECK(live() == before);
}

TEST_CASE("states in a file") {
  const std::string folder = std::filesystem::current_path().string() + "/states";
  std::filesystem::create_directory(folder);
  in_modes([&](const auto& backward) {
    const LoopModel model;
    for (const int64_t n : {3, 12, 60})
      for (const int64_t slots : {1, 3}) {
        const Tensor want = model.plain(n);
        rg::sum(want).backward();
        const Tensors want_grads = model.take_grads();
        const LoopCounts steps;
        const Tensor got =
            rg::checkpoint_loop(n, model.body(), model.start,
                                {.slots = slots, .disk_slots = 4, .folder = folder, .parameters = {model.w}});
        CHECK(std::filesystem::is_empty(folder));
        backward(rg::sum(got));
        CHECK(same(model.take_grads(), want_grads));
        if (n > 12) {
          CHECK(steps.written() > 0);
          CHECK(steps.read() >= steps.written());
          CHECK(steps.executed() <= 2 * rg::checkpoint_loop_steps(n, slots + 4));
        }
      }
  });
}

TEST_CASE("random numbers of a step are repeated, and the stream goes on as if there was no backward") {
  in_modes([](const auto& backward) {
    const Tensor start = shifted_wave(8).requires_grad_();
    const auto body = [](const Tensor& u) { return rg::sin(u) * rg::rand({8}); };
    rg::manual_seed(3);
    Tensor want = start;
    for (int i = 0; i < 30; ++i) want = body(want);
    const Tensor next = rg::rand({2});
    rg::sum(want).backward();
    const Tensor want_grad = start.grad();
    start.set_grad({});
    rg::manual_seed(3);
    const Tensor got = rg::checkpoint_loop(30, body, start, {.slots = 3});
    CHECK(same_bits(got, want));
    backward(rg::sum(got));
    CHECK(same_bits(rg::rand({2}), next));
    CHECK(same_bits(start.grad(), want_grad));
  });
}

TEST_CASE("several tensors, integers among them") {
  in_modes([](const auto& backward) {
    const Tensor x = shifted_wave(6).requires_grad_(), v = shifted_wave(6, 0.3).requires_grad_();
    const auto body = [](const Tensors& s, int64_t) -> Tensors {
      return {s[0] + s[1] * 0.1, s[1] - rg::sin(s[0]) * 0.1, s[2] + 1};
    };
    Tensors want{x, v, rg::zeros({1}, {rg::kInt64})};
    for (int i = 0; i < 25; ++i) want = body(want, i);
    rg::sum(want[0]).backward();
    const Tensor want_x = x.grad(), want_v = v.grad();
    x.set_grad({});
    v.set_grad({});
    const Tensors got = rg::checkpoint_loop(25, body, {x, v, rg::zeros({1}, {rg::kInt64})}, {.slots = 4});
    CHECK(got[2].item<int64_t>() == 25);
    CHECK_FALSE(got[2].requires_grad());
    CHECK(same_bits(got[1], want[1]));
    backward(rg::sum(got[0]));  // the second result has no gradient
    CHECK(same_bits(x.grad(), want_x));
    CHECK(same_bits(v.grad(), want_v));
  });
}

TEST_CASE("a second backward, and one after an exception") {
  const LoopModel model;
  const Tensor want = model.plain(30);
  rg::sum(want).backward();
  const Tensors want_grads = model.take_grads();
  int64_t until = 1000;
  const auto body = [&](const Tensor& u, int64_t i) {
    if (until-- == 0) throw std::runtime_error("stop");
    return model.step(u, i);
  };
  const Tensor got = rg::checkpoint_loop(30, body, model.start, {.slots = 3, .parameters = {model.w}});
  const Tensor loss = rg::sum(got);
  loss.backward({}, true);
  CHECK(same(model.take_grads(), want_grads));
  until = 20;
  CHECK_THROWS_WITH(loss.backward({}, true), "stop");
  CHECK_FALSE(model.start.grad().defined());
  until = 1000;
  loss.backward();
  CHECK(same(model.take_grads(), want_grads));
  CHECK(category_of([&] { loss.backward(); }) == rg::Category::backward_twice_freed);
}

TEST_CASE("only some gradients are wanted") {
  const LoopModel model;
  const Tensor want = rg::sum(model.plain(20));
  const Tensor want_w = rg::autograd::grad({want}, {model.w})[0];
  const Tensor got =
      rg::sum(rg::checkpoint_loop(20, model.body(), model.start, {.slots = 3, .parameters = {model.w}}));
  CHECK(same_bits(rg::autograd::grad({got}, {model.w})[0], want_w));
  const Tensor constant = model.start.detach();
  const Tensor of_constant =
      rg::sum(rg::checkpoint_loop(20, model.body(), constant, {.slots = 3, .parameters = {model.w}}));
  CHECK(same_bits(rg::autograd::grad({of_constant}, {model.w})[0], want_w));
}

TEST_CASE("a parameter with a history, and hooks that see the sum once") {
  const LoopModel model;
  int calls = 0;
  const auto run = [&](bool checkpointed) {
    const Tensor log_k = rg::scalar_tensor(-1.0).requires_grad_();
    const Tensor k = rg::exp(log_k);
    const auto handle = k.register_hook([&](const Tensor& g) {
      ++calls;
      return g * 2.0;
    });
    const auto on_leaf = log_k.register_hook([&](const Tensor& g) {
      ++calls;
      return g * 3.0;
    });
    const auto body = [&](const Tensor& u) { return rg::sin(u) * k; };
    Tensor u = model.start;
    if (checkpointed)
      u = rg::checkpoint_loop(12, body, u, {.slots = 3, .parameters = {k}});
    else
      for (int i = 0; i < 12; ++i) u = body(u);
    rg::sum(u).backward();
    model.take_grads();
    return log_k.grad();
  };
  const Tensor want = run(false);
  CHECK(calls == 2);
  CHECK(same_bits(run(true), want));
  CHECK(calls == 4);

  calls = 0;
  const auto on_leaf = model.w.register_hook([&](const Tensor& g) {
    ++calls;
    return g * 2.0;
  });
  rg::sum(model.plain(10)).backward();
  const Tensors want_grads = model.take_grads();
  rg::sum(rg::checkpoint_loop(10, model.body(), model.start, {.slots = 3, .parameters = {model.w}}))
      .backward();
  CHECK(calls == 2);
  CHECK(same(model.take_grads(), want_grads));
}

TEST_CASE("double backward and forward mode") {
  const LoopModel model;
  const auto loop = [&](const Tensor& u) {
    return rg::checkpoint_loop(9, model.body(), u, {.slots = 3, .parameters = {model.w}});
  };
  const auto second = [&](const Tensor& loss) {
    const Tensors g = rg::autograd::grad({loss}, {model.start, model.w}, {}, {}, true);
    return rg::autograd::grad({rg::sum(g[0] * g[0]) + rg::sum(g[1] * g[1])}, {model.start, model.w});
  };
  const Tensors want = second(rg::sum(rg::exp(model.plain(9)))),
                got = second(rg::sum(rg::exp(loop(model.start))));
  for (size_t i = 0; i < 2; ++i) CHECK(largest(got[i] - want[i]) < 1e-5 * largest(want[i]));

  const Tensor direction = shifted_wave(3 * kLoopWidth, 0.2).view({3, kLoopWidth});
  const auto tangent = [&](const std::function<Tensor(const Tensor&)>& f) {
    return rg::autograd::jvp([&](const Tensors& x) -> Tensors { return {f(x[0])}; }, {model.start},
                             {direction})
        .tangents[0];
  };
  const Tensor want_t = tangent([&](const Tensor& x) {
    Tensor u = x;
    for (int64_t i = 0; i < 9; ++i) u = model.step(u, i);
    return u;
  });
  CHECK(same_bits(tangent(loop), want_t));
}

TEST_CASE("compiled functions and steps") {
  const LoopModel model;
  const Tensor want = rg::sum(model.plain(24));
  want.backward();
  const Tensors want_grads = model.take_grads();
  const auto loss = [&](const Tensor& u) {
    return rg::sum(rg::checkpoint_loop(24, model.body(), u, {.slots = 4, .parameters = {model.w}}));
  };
  const auto f = rg::compile(loss);
  const auto step = rg::compile_step([&](const Tensor& u) {
    const Tensor y = loss(u);
    y.backward();
    return y;
  });
  for (int i = 0; i < 3; ++i) {
    const LoopCounts steps;
    const Tensor y = f(model.start);
    CHECK(same_bits(y, want));
    y.backward();
    CHECK(same(model.take_grads(), want_grads));
    if (i > 0) CHECK(steps.executed() == rg::checkpoint_loop_steps(24, 4));
    CHECK(same_bits(step(model.start), want));
    CHECK(same(model.take_grads(), want_grads));
  }
  CHECK(f.stats().captures == 1);
}

TEST_CASE("a loop in a checkpoint, and a checkpoint in a loop") {
  const LoopModel model;
  rg::sum(model.plain(10)).backward();
  const Tensors want = model.take_grads();
  rg::sum(rg::checkpoint(
              [&](const Tensor& u) {
                return rg::checkpoint_loop(10, model.body(), u, {.slots = 2, .parameters = {model.w}});
              },
              model.start))
      .backward();
  CHECK(same(model.take_grads(), want));
  const auto body = [&](const Tensor& u, int64_t i) {
    return rg::checkpoint([&](const Tensor& v) { return model.step(v, i); }, u);
  };
  rg::sum(rg::checkpoint_loop(10, body, model.start, {.slots = 2, .parameters = {model.w}})).backward();
  CHECK(same(model.take_grads(), want));
}

TEST_CASE("the pair around a loop gets the initial state") {
  const LoopModel model;
  rg::sum(model.plain(10)).backward();
  const Tensors want = model.take_grads();
  int packs = 0;
  const auto pair = rg::saved_tensor_hooks(
      [&](const Tensor& x) {
        ++packs;
        return rg::clone(x);
      },
      [](const Tensor& x) { return x; });
  Tensor y;
  {
    const rg::SavedTensorHooksGuard guard(pair);
    y = rg::checkpoint_loop(10, model.body(), model.start, {.slots = 2, .parameters = {model.w}});
  }
  CHECK(packs == 1);
  rg::sum(y).backward();
  CHECK(packs == 1);
  CHECK(same(model.take_grads(), want));
}

TEST_CASE("a loop nothing of which requires a gradient gives none to what its body writes") {
  const Tensor start = shifted_wave(8), energy = rg::zeros({5});
  const auto body = [&](const Tensor& u, int64_t i) {
    energy.select(0, i).copy_(rg::sum(u * u));
    return rg::sin(u);
  };
  for (int i = 0; i < 2; ++i) CHECK_FALSE(rg::checkpoint_loop(5, body, start).requires_grad());
  CHECK_FALSE(energy.requires_grad());
}

TEST_CASE("without gradients a loop is a loop") {
  const LoopModel model;
  const int64_t before = live();
  const rg::NoGradGuard no_grad;
  const Tensor y = rg::checkpoint_loop(10, model.body(), model.start, {.slots = 5, .parameters = {model.w}});
  CHECK(live() == before + y.nbytes());
  CHECK_FALSE(y.requires_grad());
}

TEST_CASE("parameters that depend on one another, repeat, or are the state") {
  const Tensor k = shifted_wave(6, 0.3).requires_grad_(), u0 = shifted_wave(6).requires_grad_();
  const auto grads = [&](const Tensor& loss, bool again) {
    if (!again) return rg::autograd::grad({loss}, {k, u0}, {}, {}, false, true, true);
    const Tensors first = rg::autograd::grad({loss}, {k, u0}, {}, {}, true, true, true);
    return rg::autograd::grad({rg::sum(first[0] * first[0]) + rg::sum(first[1] * first[1])}, {k, u0}, {}, {},
                              false, true, true);
  };
  // The state and the parameters of a loop of u * a + sin(u) * b, from tensors that are computed here.
  struct Case {
    Tensor start, a, b;
    Tensors parameters;
  };
  const std::vector<std::function<Case()>> cases{[&]() -> Case {
                                                   const Tensor twice = k * 2.0;
                                                   return {u0, k, twice, {k, twice}};
                                                 },
                                                 [&]() -> Case {
                                                   const Tensor e = rg::exp(k), both = e + k;
                                                   return {u0, e, both, {both, e, k}};
                                                 },
                                                 [&]() -> Case {
                                                   return {u0, k, k, {k, k}};
                                                 },
                                                 [&]() -> Case {
                                                   return {rg::sin(k) * u0, k, k, {k}};
                                                 },
                                                 [&]() -> Case {
                                                   return {k, k, k, {k}};
                                                 },
                                                 [&]() -> Case {
                                                   const Tensor e = rg::exp(k);
                                                   return {e, k, e, {k, e}};
                                                 }};
  for (size_t i = 0; i < cases.size(); ++i)
    for (const bool again : {false, true}) {
      CAPTURE(i, again);
      const auto loss = [&](bool checkpointed) {
        const Case c = cases[i]();
        const auto body = [a = c.a, b = c.b](const Tensor& u) { return u * a + rg::sin(u) * b; };
        Tensor u = c.start;
        if (checkpointed)
          u = rg::checkpoint_loop(6, body, u, {.slots = 2, .parameters = c.parameters});
        else
          for (int n = 0; n < 6; ++n) u = body(u);
        return rg::sum(u * u);
      };
      const Tensors want = grads(loss(false), again), got = grads(loss(true), again);
      for (size_t j = 0; j < 2; ++j) CHECK(largest(got[j] - want[j]) <= 1e-4 * largest(want[j]));
    }
  // A state of one tensor twice, and of one that depends on the other.
  const auto pair_body = [](const Tensors& s) -> Tensors { return {s[0] * 0.5 + s[1], rg::sin(s[0])}; };
  for (const bool depends : {false, true})
    for (const bool again : {false, true}) {
      const auto loss = [&](bool checkpointed) {
        Tensors s{u0 * k, {}};
        s[1] = depends ? rg::exp(s[0]) : s[0];
        if (checkpointed)
          s = rg::checkpoint_loop(6, pair_body, s, {.slots = 2});
        else
          for (int n = 0; n < 6; ++n) s = pair_body(s);
        return rg::sum(s[0] * s[0] + s[1]);
      };
      const Tensors want = grads(loss(false), again), got = grads(loss(true), again);
      for (size_t j = 0; j < 2; ++j) CHECK(largest(got[j] - want[j]) <= 1e-4 * largest(want[j]));
    }
}

TEST_CASE("a hundred parameters") {
  Tensors weights;
  for (int i = 0; i < 100; ++i) weights.push_back(rg::full({2}, 0.01 * i).requires_grad_());
  const auto body = [weights](const Tensor& u, int64_t i) { return u + weights[static_cast<size_t>(i)]; };
  const auto f = [&](const Tensor& x) {
    return rg::sum(rg::checkpoint_loop(100, body, x, {.slots = 3, .parameters = weights}));
  };
  const auto compiled = rg::compile(f);
  const Tensor x = rg::ones({2}).requires_grad_();
  for (int i = 0; i < 2; ++i) {
    f(x).backward();
    compiled(x).backward();
  }
  for (const Tensor& w : weights) CHECK(w.grad().to_vector() == std::vector<double>{4, 4});
}

TEST_CASE("a condition that draws random numbers") {
  const Tensor start = shifted_wave(8).requires_grad_();
  const auto body = [](const Tensor& u) { return rg::sin(u) * rg::rand({8}); };
  const auto more = [](const Tensor&, int64_t step) {
    return step < 10 || rg::rand({1}).item<double>() < 0.9;
  };
  rg::manual_seed(5);
  Tensor want = start;
  for (int64_t i = 0; more(want, i); ++i) want = body(want);
  rg::sum(want).backward();
  const Tensor want_grad = start.grad();
  start.set_grad({});
  rg::manual_seed(5);
  const Tensor got = rg::checkpoint_while(more, body, start, {.slots = 2});
  CHECK(same_bits(got, want));
  rg::sum(got).backward();
  CHECK(same_bits(start.grad(), want_grad));
  // A single step, twice.
  const Tensor once = rg::sum(rg::checkpoint_loop(1, body, start, {.slots = 1}));
  const Tensor first = rg::autograd::grad({once}, {start}, {}, true)[0];
  CHECK(same_bits(rg::autograd::grad({once}, {start})[0], first));
}

TEST_CASE("a loop without steps, or that returns its state") {
  const Tensor start = shifted_wave(8).requires_grad_();
  for (const int64_t n : {0, 3}) {
    const Tensor y = rg::checkpoint_loop(n, [](const Tensor& u) { return u; }, start, {.slots = 2});
    y.mul_(2.0);
    rg::sum(y).backward();
    CHECK(start.grad().to_vector() == std::vector<double>(8, n == 0 ? 2.0 : 4.0));
  }
  int64_t n = 0;
  const auto compiled = rg::compile([&](const Tensor& x) {
    return rg::sum(rg::checkpoint_while([&](const Tensor&, int64_t step) { return step < n; },
                                        [](const Tensor& u) { return rg::sin(u); }, x, {.slots = 2}));
  });
  for (n = 0; n < 4; ++n) CHECK_NOTHROW(compiled(start).backward());
}

TEST_CASE("a backward without a gradient executes nothing") {
  const Tensor start = shifted_wave(8).requires_grad_();
  const auto body = [](const Tensors& s) -> Tensors { return {rg::sin(s[0]), s[1].detach()}; };
  const Tensors end = rg::checkpoint_loop(50, body, {start, start}, {.slots = 2});
  const LoopCounts steps;
  rg::sum(end[1]).backward();
  CHECK(steps.executed() <= 1);
}
