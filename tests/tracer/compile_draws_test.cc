// The position of a recorded step in the random stream when it fails: a run draws all its numbers at the beginning, and
// returns those that the function would not have reached.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;

// A leaf whose hook may throw, between two draws before it and two after it.
struct Side {
  Tensor p = parameter({4}, 1);
  bool fails = false;
  Side() {
    p.register_post_accumulate_grad_hook([this](const Tensor&) {
      if (fails) throw std::out_of_range("in the hook");
    });
  }
  Tensor body(const Tensor& x) {
    p.set_grad({});
    const Tensor late = rg::rand({4});  // not used before the hook
    rg::sum(rg::dropout(p * x, 0.5, true)).backward();
    const Tensor unused = rg::rand({100});
    return p.grad() * late + rg::rand({4});
  }
};

// What f leaves of a stream, and what it throws.
template <class F>
std::pair<rg::GeneratorState, std::string> outcome(uint64_t seed, const F& f) {
  rg::manual_seed(seed);
  const std::string error = error_of(f);
  return {rg::default_generator().state(), error.substr(0, error.find('\n'))};
}

}  // namespace

TEST_CASE("a run that fails leaves the random stream where the function would have") {
  Side plain, recorded;
  auto step = rg::compile_step([&](const Tensor& x) { return recorded.body(x); });
  for (const bool fails : {true, false, true, true, false}) {
    plain.fails = recorded.fails = fails;
    const Tensor x = spread(rg::Shape{4}, 5);
    Tensor expected, found;
    const auto eager = outcome(7, [&] { expected = plain.body(x).detach(); });
    CHECK(eager == outcome(7, [&] { found = step(x); }));
    CHECK(eager.first.offset == (fails ? 2 : 4));
    check_same({expected}, {found});
  }
  CHECK(step.stats().captures == 1);
}

TEST_CASE("numbers that were drawn by others meanwhile are not given back") {
  const Tensor p = parameter({4}, 1);
  bool fails = false;
  p.register_hook([&](const Tensor& g) {
    rg::rand({4});
    if (fails) throw std::out_of_range("in the hook");
    return g;
  });
  auto step = rg::compile_step([&](const Tensor& x) {
    rg::sum(p * x).backward();
    return rg::rand({4});
  });
  step(spread(rg::Shape{4}));
  fails = true;
  CHECK(outcome(7, [&] { step(spread(rg::Shape{4})); }).first.offset == 2);
}

TEST_CASE("a recording that is broken off gives back what it has drawn") {
  bool fails = true;
  auto step = rg::compile_step([&](const Tensor& x) {
    const Tensor y = rg::dropout(x, 0.5, true) + rg::rand({4});
    if (fails) y.sum().item();
    return y;
  });
  CHECK(outcome(7, [&] { step(spread(rg::Shape{4})); }).first == rg::GeneratorState{7, 0});
  fails = false;
  CHECK(outcome(7, [&] { step(spread(rg::Shape{4})); }).first == rg::GeneratorState{7, 2});
}

namespace {
struct Opaque : rg::Function<Opaque> {
  static Tensor forward(rg::AutogradContext*, const Tensor& x) { return x * 2.0; }
  static Tensors backward(rg::AutogradContext*, const Tensors& g) { return {g[0] * 2.0}; }
};
}  // namespace

TEST_CASE("a function that calls opaque ones draws the same from its first call on") {
  const auto f = [](const Tensor& x) { return Opaque::apply(rg::dropout(x, 0.5, true)) + rg::rand({4}); };
  auto step = rg::compile_step(f);
  for (int i = 0; i < 3; ++i) {
    const Tensor x = spread(rg::Shape{4}, i);
    Tensor expected, found;
    const auto eager = outcome(7, [&] { expected = f(x); });
    CHECK(eager == outcome(7, [&] { found = step(x); }));
    check_same({expected}, {found});
  }
}
