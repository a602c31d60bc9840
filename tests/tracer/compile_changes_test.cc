// Changes between two calls of a recorded function, besides its arguments: options of an optimizer that are no numbers,
// whether a hook is traceable, the layout of gradients that a step begins with. An earlier recording must not be used
// then.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using rg::Category;

// What body(call) gives is the same where call(f, arguments) calls f as it is, and where it is a compiled step, with at
// most so many recordings.
template <class Body>
void same(int64_t captures, const Body& body) {
  rg::FunctionCache step(rg::FunctionKind::step);
  const Tensors eager = body([](const auto& f, const Tensors& a) { return f(a); });
  const Tensors compiled = body([&](const auto& f, const Tensors& a) { return step.run(f, a); });
  check_same(eager, compiled);
  CHECK(step.stats().captures <= captures);
}

// Values of a parameter over some steps; change(options, i) is called before each.
template <class Optimizer, class Change>
auto trained(typename Optimizer::Options options, const Change& change) {
  return [options, change](const auto& call) {
    const Tensor p = parameter({3}), x = spread(rg::Shape{3}, 1);
    Optimizer optimizer({p}, options);
    Tensors values;
    for (int i = 0; i < 6; ++i) {
      change(optimizer.param_groups()[0].options, i);
      call(
          [&](const Tensors& a) {
            rg::sum(p * p * a[0]).backward();
            optimizer.step();
            optimizer.zero_grad();
            return Tensors{};
          },
          {x * (i < 4 ? 5.0 : 0.1)});
      values.push_back(p.detach().clone());
      for (const auto& [name, state] : optimizer.state_dict()) values.push_back(state.clone());
    }
    return values;
  };
}

// Two steps as it is, two with gradients that `give` gives, two without.
template <class Give>
auto accumulated(const Give& give) {
  return [give](const auto& call) {
    const Tensor p = parameter({2, 3}), q = parameter({2, 3}, 1), x = spread({2, 3}, 2);
    Tensors values;
    for (int i = 0; i < 6; ++i) {
      if (i == 2) give(p, q);
      if (i == 4) p.set_grad({}), q.set_grad({});
      const Tensors results = call(
          [&](const Tensors& a) {
            rg::sum(p * a[0] + q * q).backward();
            rg::optim::clip_grad_norm_({p}, 0.5);
            const rg::NoGradGuard guard;
            q.grad().add_(a[0]);
            return Tensors{p.grad() * 2.0, q.grad().reshape({6})};
          },
          {x});
      values.insert(values.end(), results.begin(), results.end());
      for (const Tensor& g : {p.grad(), q.grad()}) values.push_back(g.clone());
    }
    return values;
  };
}

}  // namespace

TEST_CASE("options of an optimizer that are no numbers are followed") {
  using rg::optim::AdamW, rg::optim::SGD;
  same(2, trained<AdamW>({.lr = 0.1}, [](auto& o, int i) { o.maximize = i >= 2; }));
  same(2, trained<AdamW>({.lr = 0.1}, [](auto& o, int i) { o.amsgrad = i >= 2 && i != 4; }));
  same(1, trained<AdamW>({.lr = 0.1}, [](auto& o, int i) { o.betas[0] = 0.1 * i; }));
  same(2, trained<SGD>({.lr = 0.1}, [](auto& o, int i) { o.momentum = i >= 2 && i != 4 ? 0.5 : 0.0; }));
  same(2, trained<SGD>({.lr = 0.1, .momentum = 0.5}, [](auto& o, int i) { o.nesterov = i >= 2; }));
  same(2, trained<SGD>({.lr = 0.1, .momentum = 0.5}, [](auto& o, int i) { o.maximize = i % 2 == 1; }));
}

TEST_CASE("a hook that is no longer traceable is called in each run") {
  same(3, [](const auto& call) {
    const Tensor p = parameter({3});
    int calls = 0;
    rg::HookHandle hook = p.register_hook([&](const Tensor& g) {
      ++calls;
      return g * 2.0;
    });
    const auto step = [&](const Tensors& a) {
      rg::sum(p * a[0]).backward();
      return Tensors{};
    };
    Tensors values;
    for (bool traceable : {false, true, false}) {
      hook.set_traceable(traceable);
      call(step, {spread(rg::Shape{3})});
      calls = 0;
      for (int i = 0; i < 2; ++i) call(step, {spread(rg::Shape{3})});
      if (!traceable) CHECK(calls == 2);
      values.push_back(p.grad().clone());
    }
    return values;
  });
}

TEST_CASE("gradients that lie otherwise than at the recording, or in each other's memory") {
  const auto flat = [](const rg::IntArray& begins) {
    return [begins](const Tensor& p, const Tensor& q) {
      const Tensor memory = rg::zeros({20});
      p.set_grad(memory.narrow(0, begins[0], 6).view({2, 3}));
      q.set_grad(memory.narrow(0, begins[1], 6).view({2, 3}));
    };
  };
  same(3, accumulated([](const Tensor& p, const Tensor& q) {
         p.set_grad(spread({2, 3}, 5));
         q.set_grad(p.grad());
       }));
  same(4, accumulated([](const Tensor& p, const Tensor& q) {
         p.set_grad(spread({3, 2}, 5).t());
         q.set_grad(spread({3, 2}, 6).t().detach());
       }));
  same(3, accumulated(flat({0, 6})));
  same(3, accumulated(flat({8, 1})));
  same(3, accumulated(flat({4, 5})));
}

TEST_CASE("a gradient that shows an element twice is not added to") {
  const Tensor p = parameter({2, 3}), x = spread({2, 3}, 1);
  const auto f = [&](const Tensor& a) { rg::sum(p * a).backward(); };
  const auto refused = [&](auto&& call) {
    p.set_grad(rg::expand(spread({1, 3}, 2), {2, 3}));
    CHECK(category_of(call) == Category::overlapping_write);
    CHECK(same_bits(p.grad(), rg::expand(spread({1, 3}, 2), {2, 3})));
  };
  auto step = rg::compile_step(f);
  rg::CompiledBackward backward;
  refused([&] { f(x); });
  refused([&] { step(x); });
  refused([&] { backward(rg::sum(p * x)); });
}

TEST_CASE(
    "the gradient that an argument has is added to, read and written as that of a tensor from outside") {
  same(5, [](const auto& call) {
    const Tensor p = parameter({3}), x = parameter({3}, 1);
    Tensors values;
    for (int i = 0; i < 8; ++i) {
      if (i == 4) x.set_grad({});
      if (i == 6) x.set_grad(rg::ones({8}).narrow(0, 2, 3));
      const Tensors results = call(
          [&](const Tensors& a) {
            const Tensor before = a[0].grad().defined() ? a[0].grad() * 3.0 : p * 2.0;
            rg::sum(rg::exp(p) * a[0]).backward();
            const rg::NoGradGuard guard;
            a[0].grad().mul_(0.5);
            return Tensors{before.detach(), a[0].grad().clone()};
          },
          {x});
      values.insert(values.end(), results.begin(), results.end());
      values.push_back(x.grad().clone());
      values.push_back(p.grad().clone());
    }
    return values;
  });
}

TEST_CASE("an argument that is a leaf, or shows memory, from outside") {
  const Tensor p = parameter({3}), x = parameter({3}, 1), buffer = spread(rg::Shape{3}, 2);
  auto step = rg::compile_step([&](const Tensor& a) { rg::sum(rg::exp(p) * a).backward(); });
  step(x);
  CHECK(category_of([&] { step(p); }) == Category::unsupported);
  CHECK(same_bits(p.grad(), (rg::exp(p) * x).detach()));
  auto write = rg::compile_step([&](const Tensor& a) {
    const Tensor before = a * 2.0;
    buffer.add_(rg::ones({3}));
    return before + a;
  });
  write(spread(rg::Shape{3}, 3));
  CHECK(category_of([&] { write(buffer.detach()); }) == Category::unsupported);
  CHECK(same_bits(buffer, spread(rg::Shape{3}, 2) + 1.0));
}

TEST_CASE("backwards from other results, after the parameters were written to") {
  const auto train = [](const auto& call) {
    const Tensor p = parameter({3}), q = parameter({3}, 1), buffer = spread(rg::Shape{3}, 2);
    rg::optim::SGD optimizer({p, q}, {.lr = 0.1});
    Tensors values;
    for (int i = 0; i < 4; ++i) {
      const Tensors losses = call(
          [&](const Tensors& a) {
            const Tensor h = rg::exp(p) * a[0];
            {
              const rg::NoGradGuard guard;
              buffer.add_(h);
            }
            return Tensors{rg::sum(h * q * buffer), rg::split(p, 2)[0]};
          },
          {spread(rg::Shape{3}, 3)});
      (i == 0 ? losses[0] + rg::sum(losses[1]) : rg::sum(losses[static_cast<size_t>(i % 2)])).backward();
      optimizer.step();
      optimizer.zero_grad();
      values.insert(values.end(), {p.detach().clone(), q.detach().clone(), buffer.clone()});
    }
    return values;
  };
  rg::FunctionCache f(rg::FunctionKind::function);
  check_same(train([](const auto& g, const Tensors& a) { return g(a); }),
             train([&](const auto& g, const Tensors& a) { return f.run(g, a); }));
  CHECK(f.stats().captures == 1);
}

TEST_CASE("retain_grad inside a function stands in the way of none of its backwards") {
  const Tensor x = parameter({3});
  auto f = rg::compile([](const Tensor& a) {
    const Tensor h = rg::exp(a);
    h.retain_grad();
    return Tensors{rg::sum(h), rg::sum(h * h)};
  });
  for (int i = 0; i < 2; ++i) f(x)[static_cast<size_t>(i)].backward();
  const Tensor h = rg::exp(x).detach();
  CHECK(same_bits(x.grad(), h + (h + h) * h));
}

TEST_CASE("a leaf that is made in each call keeps no memory, and has its gradient where it is a result") {
  const Tensor x = spread(rg::Shape{1000}, 1);
  const auto run = [&](rg::FunctionKind kind) {
    rg::FunctionCache f(kind);
    Tensor result;
    int64_t live = 0;
    for (int i = 0; i < 3; ++i) {
      result = f.run(
          [](const Tensors& a) {
            const Tensor leaf = (a[0] * 2.0).detach().requires_grad_();
            rg::sum(leaf * leaf).backward();
            return Tensors{leaf};
          },
          {x})[0];
      if (i == 0) live = rg::memory::stats().live_bytes;
    }
    CHECK(rg::memory::stats().live_bytes == live);
    CHECK(f.stats().captures == 1);
    CHECK(same_bits(result.grad(), x * 4.0));
  };
  run(rg::FunctionKind::step);
  run(rg::FunctionKind::function);
}
