// User code inside a recorded step: hooks on leaves, after accumulation, and what they may read. Each step runs eagerly
// and compiled, on tensors of its own, and must agree in events and bits.
#include <catch2/catch.hpp>

#include "ir/graph.h"
#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using Events = std::vector<std::string>;
using rg::Category;

std::string first_of(const Tensor& t) {
  return t.defined() ? std::to_string(t.to_vector().at(0)) : std::string("none");
}

// One side: parameters, their events, a buffer.
struct Side {
  Tensor w = parameter({3, 4}, 7), v = parameter({rg::Dim(4)}, 8), buffer = rg::zeros({2, 4});
  Events events;
  Tensor loss(const Tensor& x) const { return rg::sum(rg::tanh(rg::mm(x, w) * v)); }
  Tensors all() const { return {w.detach().clone(), v.detach().clone(), w.grad(), v.grad(), buffer.clone()}; }
};

// set_up(side) registers hooks; body(side, x) is the step.
template <class SetUp, class Body>
rg::FunctionCache::Stats run_steps(const SetUp& set_up, const Body& body, int steps = 3) {
  Side plain, recorded;
  set_up(plain);
  set_up(recorded);
  auto step = rg::compile_step([&](const Tensor& x) { return body(recorded, x); });
  for (int i = 0; i < steps; ++i) {
    INFO("step " << i);
    const Tensor x = spread({2, 3}, i);
    const Tensor expected = body(plain, x).detach();
    check_same({expected}, {step(x)});
    check_same(plain.all(), recorded.all());
    CHECK(plain.events == recorded.events);
  }
  INFO(step.last_capture_reason());
  CHECK(step.stats().eager == 0);
  return step.stats();
}

}  // namespace

TEST_CASE(
    "a hook after accumulation updates the leaf and drops its gradient: the optimizer in the backward") {
  const auto stats = run_steps(
      [](Side& s) {
        for (const Tensor& p : {s.w, s.v})
          p.register_post_accumulate_grad_hook([&s](const Tensor& leaf) {
            s.events.push_back("step " + first_of(leaf.grad()) + " " + first_of(leaf));
            rg::NoGradGuard off;
            leaf.add_(leaf.grad(), -0.1);
            leaf.set_grad({});
          });
      },
      [](Side& s, const Tensor& x) {
        const Tensor loss = s.loss(x);
        loss.backward();
        return loss;
      });
  CHECK(stats.captures == 1);
  CHECK(stats.hits == 2);
}

TEST_CASE("an optimizer per parameter, called by a hook") {
  std::vector<std::unique_ptr<rg::optim::AdamW>> optimizers;
  const auto stats = run_steps(
      [&](Side& s) {
        for (const Tensor& p : {s.w, s.v}) {
          optimizers.push_back(
              std::make_unique<rg::optim::AdamW>(Tensors{p}, rg::optim::AdamWOptions{.lr = 0.05}));
          p.register_post_accumulate_grad_hook([optimizer = optimizers.back().get()](const Tensor&) {
            optimizer->step();
            optimizer->zero_grad();
          });
        }
      },
      [](Side& s, const Tensor& x) {
        const Tensor loss = s.loss(x);
        loss.backward();
        return loss;
      });
  CHECK(stats.captures == 1);
}

TEST_CASE("a traceable hook after accumulation is part of the step") {
  int calls = 0;
  const auto stats = run_steps(
      [&](Side& s) {
        s.w.register_post_accumulate_grad_hook([&calls](const Tensor& leaf) {
             ++calls;
             rg::NoGradGuard off;
             leaf.add_(leaf.grad(), -0.1);
             leaf.set_grad({});
           })
            .set_traceable();
      },
      [](Side& s, const Tensor& x) {
        s.v.set_grad({});
        const Tensor loss = s.loss(x);
        loss.backward();
        return loss;
      });
  CHECK(calls == 3 + 1);
  CHECK(stats.captures == 1);
}

TEST_CASE("hooks see .grad of other leaves, buffers and parameters as they are eagerly at that place") {
  const auto look = [](Side& s, std::string what) {
    s.events.push_back(std::move(what) + " " + first_of(s.w.grad()) + " " + first_of(s.v.grad()) + " " +
                       first_of(s.buffer) + " " + first_of(s.w));
  };
  const auto stats = run_steps(
      [&](Side& s) {
        s.w.register_hook([&s, look](const Tensor& g) {
          look(s, "w");
          return g * 2.0;
        });
        s.v.register_hook([&s, look](const Tensor& g) {
          look(s, "v");
          return g;
        });
        s.v.register_post_accumulate_grad_hook([&s, look](const Tensor&) { look(s, "v has it"); });
      },
      [](Side& s, const Tensor& x) {
        s.w.set_grad({});
        s.v.set_grad({});
        const Tensor h = rg::mm(x, s.w) * s.v;
        {
          rg::NoGradGuard off;
          s.buffer.mul_(0.5).add_(h.detach());
        }
        const Tensor loss = rg::sum(rg::exp(h));
        loss.backward();
        {
          rg::NoGradGuard off;
          for (const Tensor& p : {s.w, s.v}) p.add_(p.grad(), -0.01);
          s.buffer.add_(rg::ones({4}));
        }
        rg::sum(rg::mm(x, s.w)).backward();
        return loss;
      });
  CHECK(stats.captures == 1);
}

TEST_CASE("a hook writes to the gradient that was accumulated; the step goes on with it") {
  const auto stats = run_steps(
      [](Side& s) {
        s.w.register_post_accumulate_grad_hook([](const Tensor& leaf) {
          rg::NoGradGuard off;
          leaf.grad().mul_(0.5);
        });
        s.v.register_post_accumulate_grad_hook([](const Tensor& leaf) { leaf.set_grad(leaf.grad() * 3.0); });
      },
      [](Side& s, const Tensor& x) {
        s.w.set_grad({});
        s.v.set_grad({});
        const Tensor loss = s.loss(x);
        loss.backward();
        rg::NoGradGuard off;
        for (const Tensor& p : {s.w, s.v}) p.add_(p.grad(), -0.1);
        return loss;
      });
  CHECK(stats.captures == 1);
}

TEST_CASE("gradients that stay from step to step, and two backwards in one") {
  const auto stats = run_steps(
      [](Side& s) {
        s.w.register_post_accumulate_grad_hook(
            [&s](const Tensor& leaf) { s.events.push_back("w " + first_of(leaf.grad())); });
      },
      [](Side& s, const Tensor& x) {
        const Tensor loss = s.loss(x);
        loss.backward({}, true);
        loss.backward();
        return loss;
      });
  CHECK(stats.captures == 2);  // .grad is there from the second step on
}

TEST_CASE("a gradient that a hook drops, and the step reads, is an error that says so") {
  const Tensor w = parameter({rg::Dim(3)}, 1);
  bool drops = false;
  w.register_post_accumulate_grad_hook([&](const Tensor& leaf) {
    if (drops) leaf.set_grad({});
  });
  rg::optim::SGD optimizer({w}, {.lr = 0.1});
  auto step = rg::compile_step([&](const Tensor& x) {
    optimizer.zero_grad();
    rg::sum(w * x).backward();
    optimizer.step();
  });
  step(spread({rg::Dim(3)}));
  drops = true;
  CHECK_THROWS_WITH(step(spread({rg::Dim(3)})), Catch::Contains("dropped .grad"));
}

TEST_CASE("a hook that throws: what was done before it stays, and a later step is whole") {
  struct State {
    Side side;
    int fail_at = 0, calls = 0;
  } plain, recorded;
  const auto set_up = [](State& s) {
    for (const Tensor& p : {s.side.w, s.side.v})
      p.register_post_accumulate_grad_hook([&s](const Tensor& leaf) {
        if (++s.calls == s.fail_at) throw std::out_of_range("in the hook");
        rg::NoGradGuard off;
        leaf.add_(leaf.grad(), -0.1);
      });
  };
  set_up(plain);
  set_up(recorded);
  const auto body = [](Side& s, const Tensor& x) {
    s.w.set_grad({});
    s.v.set_grad({});
    {
      rg::NoGradGuard off;
      s.buffer.add_(rg::mm(x, s.w));
    }
    s.loss(x).backward();
  };
  auto step = rg::compile_step([&](const Tensor& x) { body(recorded.side, x); });
  for (int fail_at : {0, 1, 2, 0}) {
    INFO("fails at " << fail_at);
    plain.calls = recorded.calls = 0;
    plain.fail_at = recorded.fail_at = fail_at;
    const Tensor x = spread({2, 3}, fail_at);
    if (fail_at == 0) {
      body(plain.side, x);
      step(x);
    } else {
      CHECK_THROWS_AS(body(plain.side, x), std::out_of_range);
      CHECK_THROWS_AS(step(x), std::out_of_range);
    }
    check_same(plain.side.all(), recorded.side.all());
    CHECK(plain.calls == recorded.calls);
  }
  CHECK(step.stats().captures == 1);
}

TEST_CASE("hooks that are removed or added between steps") {
  Side plain, recorded;
  std::vector<rg::HookHandle> handles;
  const auto body = [](Side& s, const Tensor& x) {
    s.w.set_grad({});
    s.v.set_grad({});
    const Tensor loss = s.loss(x);
    loss.backward();
    return loss;
  };
  auto step = rg::compile_step([&](const Tensor& x) { return body(recorded, x); });
  const auto both = [&](int seed) {
    const Tensor x = spread({2, 3}, seed);
    check_same({body(plain, x).detach()}, {step(x)});
    check_same(plain.all(), recorded.all());
    CHECK(plain.events == recorded.events);
  };
  both(0);
  for (Side* s : {&plain, &recorded})
    handles.push_back(s->w.register_post_accumulate_grad_hook(
        [s](const Tensor& leaf) { s->events.push_back(first_of(leaf.grad())); }));
  both(1);
  both(2);
  CHECK(plain.events.size() == 2);
  for (rg::HookHandle& h : handles) h.remove();
  both(3);
  CHECK(plain.events.size() == 2);
  CHECK(step.stats().captures == 2);
}

TEST_CASE("hooks of a leaf that is an argument are those of the recorded call, others are recorded again") {
  struct OneSide {
    Events events;
    rg::HookHandle add(const Tensor& leaf, const std::string& name) {
      leaf.register_post_accumulate_grad_hook([this, name](const Tensor& t) {
        events.push_back(name + " has " + first_of(t.grad()));
        rg::NoGradGuard off;
        t.grad().mul_(0.5);
      });
      return leaf.register_hook([this, name](const Tensor& g) {
        events.push_back(name + " " + first_of(g));
        return g * 3.0;
      });
    }
  } plain, recorded;
  const auto body = [](const Tensor& leaf, const Tensor& x) {
    leaf.set_grad({});
    const Tensor loss = rg::sum(rg::exp(leaf * x));
    loss.backward();
    return leaf.grad() * 2.0;
  };
  auto step = rg::compile_step(body);
  auto function = rg::compile(body);
  const Tensor a = parameter({rg::Dim(3)}, 1), b = parameter({rg::Dim(3)}, 1), c = parameter({rg::Dim(3)}, 1);
  OneSide third;
  const auto all = [&](int i) {
    const Tensor x = spread({rg::Dim(3)}, i), expected = body(a, x);
    check_same({expected, a.grad()}, {step(b, x), b.grad()});
    check_same({expected, a.grad()}, {function(c, x), c.grad()});
    CHECK(plain.events == recorded.events);
    CHECK(plain.events == third.events);
  };
  all(0);
  plain.add(a, "first"), recorded.add(b, "first"), third.add(c, "first");
  for (int i : {1, 2}) all(i);
  CHECK(plain.events.size() == 4);
  CHECK(step.stats().captures == 2);
  CHECK(step.last_capture_reason() == "a leaf has other hooks");
  rg::HookHandle h = plain.add(a, "second"), k = recorded.add(b, "second"), l = third.add(c, "second");
  all(3);
  h.remove(), k.remove(), l.remove();
  all(4);
  CHECK(function.stats().captures == 4);
}
