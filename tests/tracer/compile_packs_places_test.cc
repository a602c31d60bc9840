// Saved-tensor hooks in compiled functions, in less common places: on one slot, under backwards inside the function,
// with gradients of gradients in a step, on several threads. See compile_packs_test.cc for the common ones.
#include <catch2/catch.hpp>

#include <optional>
#include <thread>

#include "ir/graph.h"
#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using Events = std::vector<std::string>;

rg::RefPtr<rg::SavedTensorHooks> scaling_pair(Events& events, double factor, bool traceable = false) {
  return rg::saved_tensor_hooks(
      [&events, factor, traceable](const Tensor& t) {
        events.push_back("pack" + (traceable ? "" : " " + std::to_string(t.to_vector().at(0))));
        return t * factor;
      },
      [&events, factor](const Tensor& t) {
        events.push_back("unpack");
        return t / factor;
      },
      traceable);
}

// body(x, events) run eagerly and compiled: results, gradients, and events if they must agree.
template <class Body>
void same(const Body& body, bool events_too = true) {
  Events events;
  const auto f = [&](const Tensor& x) { return body(x, events); };
  auto compiled = rg::compile(f);
  const auto run = [&](auto&& g, int step) {
    const Tensor x = parameter({rg::Dim(4)}, step);
    events.clear();
    const Tensor y = g(x);
    y.backward();
    return std::pair(events, Tensors{y.detach(), x.grad()});
  };
  for (int i = 0; i < 3; ++i) {
    const auto [expected_events, expected] = run(f, i);
    const auto [found_events, found] = run(compiled, i);
    check_same(expected, found);
    if (events_too) CHECK(expected_events == found_events);
  }
  CHECK(compiled.stats().captures == 1);
  CHECK(compiled.stats().eager == 0);
}

}  // namespace

TEST_CASE("a pair for one slot, registered inside the function") {
  for (const bool traceable : {false, true})
    same(
        [&](const Tensor& x, Events& events) {
          const Tensor y = rg::exp(x), z = y * rg::sin(x);
          z.grad_fn().register_saved_tensor_hooks(1, scaling_pair(events, 2, traceable));
          return rg::sum(z);
        },
        !traceable);
}

TEST_CASE("a pair whose payload is the value itself, on views and on what is written to later") {
  same([](const Tensor& x, Events& events) {
    const auto identity = [&events](const Tensor& t) {
      events.push_back(rg::to_string(t.impl().type()));
      return t;
    };
    rg::SavedTensorHooksGuard guard(identity, identity);
    const Tensor m = rg::reshape(x, {2, 2}), t = rg::transpose(m, 0, 1);
    const Tensor y = rg::mm(t, m);
    const Tensor z = rg::exp(y) * t;
    const Tensor w = z * 1.0;
    w.mul_(3.0);
    return rg::sum(rg::reshape(rg::transpose(w, 0, 1), {-1}) * x);
  });
}

TEST_CASE("a backward inside a compiled function, under a pair") {
  same([](const Tensor& x, Events& events) {
    rg::SavedTensorHooksGuard guard(scaling_pair(events, 4));
    const Tensor inner = x.detach().requires_grad_();
    const Tensor g = rg::autograd::grad({rg::sum(rg::exp(inner) * inner)}, {inner})[0];
    return rg::sum(rg::sin(x) * g);
  });
}

TEST_CASE("gradients of gradients in a step, whose own saves are packed too") {
  Events events;
  const auto body = [](const Tensor& w, const Tensor& x) {
    w.set_grad({});
    const Tensor loss = rg::sum(rg::exp(w * x));
    const Tensor g = rg::autograd::grad({loss}, {w}, {}, {}, true)[0];
    rg::sum(g * g).backward();
    return loss;
  };
  const Tensor w = parameter({rg::Dim(4)}, 3), v = parameter({rg::Dim(4)}, 3);
  auto step = rg::compile_step([&](const Tensor& x) { return body(v, x); });
  for (int i = 0; i < 3; ++i) {
    const Tensor x = spread({rg::Dim(4)}, i);
    const auto run = [&](auto&& f, const Tensor& leaf) {
      events.clear();
      rg::SavedTensorHooksGuard guard(scaling_pair(events, 2));
      const Tensor loss = f(x).detach();
      return std::pair(events, Tensors{loss, leaf.grad()});
    };
    const auto [expected_events, expected] = run([&](const Tensor& t) { return body(w, t); }, w);
    const auto [found_events, found] = run(step, v);
    check_same(expected, found);
    CHECK(expected_events == found_events);
  }
  CHECK(step.stats().captures == 1);
}

TEST_CASE("gradients of one result only, and of each in turn") {
  const auto body = [](const Tensor& x) { return Tensors{rg::exp(x), rg::sin(x) * x}; };
  auto compiled = rg::compile(body);
  Events events;
  const auto run = [&](auto&& f, int which) {
    events.clear();
    const Tensor x = parameter({rg::Dim(4)}, which);
    Tensors y;
    {
      rg::SavedTensorHooksGuard guard(scaling_pair(events, 2));
      y = f(x);
    }
    rg::sum(y[static_cast<size_t>(which)]).backward();
    rg::sum(y[static_cast<size_t>(1 - which)]).backward();
    return std::pair(events, x.grad());
  };
  for (int which : {0, 1, 0}) {
    const auto [expected_events, expected] = run(body, which);
    const auto [found_events, found] = run(compiled, which);
    check_same({expected}, {found});
    CHECK(expected_events == found_events);
  }
}

TEST_CASE("several threads run one compiled function, each with a pair of its own") {
  const Tensor w = spread({rg::Dim(4)}, 5);
  auto compiled = rg::compile([&](const Tensor& x) { return rg::sum(rg::exp(x * w) * rg::sin(x)); });
  const auto run = [&](int seed, int& packs) {
    const Tensor x = parameter({rg::Dim(4)}, seed);
    rg::SavedTensorHooksGuard guard(
        [&packs](const Tensor& t) {
          ++packs;
          return t.clone();
        },
        [](const Tensor& t) { return t; });
    compiled(x).backward();
    return values(x.grad());
  };
  int none = 0;
  std::vector<std::vector<double>> expected;
  for (int i = 0; i < 4; ++i) expected.push_back(run(i, none));
  std::vector<int> packs(4), wrong(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 50; ++k)
        wrong[static_cast<size_t>(i)] +=
            run(i, packs[static_cast<size_t>(i)]) != expected[static_cast<size_t>(i)];
    });
  for (std::thread& t : threads) t.join();
  for (int i = 0; i < 4; ++i) {
    CHECK(wrong[static_cast<size_t>(i)] == 0);
    CHECK(packs[static_cast<size_t>(i)] == 50 * none / 4);
  }
  CHECK(compiled.stats().captures == 1);
}

namespace {

// Losses of two parameters over some steps, with backwards from one or the other, under `pair` if there is one; the
// parameters are written to after each backward, or before it. Values, gradients, and what was refused.
std::pair<Tensors, std::string> alternate(bool compiles, const rg::RefPtr<rg::SavedTensorHooks>& pair,
                                          bool writes_before) {
  const Tensor p = parameter({3}), q = parameter({3}, 1);
  const auto body = [&](const Tensor& x) {
    std::optional<rg::SavedTensorHooksGuard> guard;
    if (pair) guard.emplace(pair);
    return Tensors{rg::sum(rg::exp(p * x) * q), rg::sum(p * q * q * x)};
  };
  const auto write = [&] {
    const rg::NoGradGuard guard;
    for (const Tensor& t : {p, q}) t.mul_(0.5);
  };
  auto f = rg::compile(body);
  std::string errors;
  Tensors values;
  for (int i = 0; i < 5; ++i) {
    const Tensor x = spread(rg::Shape{3}, i);
    const Tensors losses = compiles ? f(x) : body(x);
    if (writes_before) write();
    try {
      (i == 0 ? losses[0] + losses[1] : losses[static_cast<size_t>(i % 2)]).backward();
    } catch (const rg::Error& e) {
      errors += std::string(rg::to_string(e.category())) + " ";
    }
    if (!writes_before) write();
    for (const Tensor& t : {p, q})
      values.insert(values.end(), {t.detach().clone(), t.grad().defined() ? t.grad().clone() : Tensor()});
  }
  return {values, errors};
}

}  // namespace

TEST_CASE("a traceable pair that changes nothing, on parameters that are written to between runs") {
  const auto same = [](const Tensor& t) { return t; };
  for (const auto& pair : {rg::RefPtr<rg::SavedTensorHooks>(), rg::saved_tensor_hooks(same, same, true)})
    for (const bool writes_before : {false, true}) {
      INFO((pair ? "with" : "without") << " a pair, written to " << (writes_before ? "before" : "after"));
      const auto [expected, expected_errors] = alternate(false, pair, writes_before);
      const auto [found, found_errors] = alternate(true, pair, writes_before);
      check_same(expected, found);
      CHECK(expected_errors == found_errors);
      CHECK(expected_errors.empty() == !writes_before);
    }
}
