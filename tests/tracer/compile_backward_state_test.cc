// State outside of the backward of a compiled function that each run reads: random numbers that traceable hooks draw,
// gradients of leaves.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;

// The gradient of x under f with the random stream at `seed`, and where the stream is then.
template <class F>
std::pair<Tensor, uint64_t> gradient(uint64_t seed, F& f, const Tensor& x) {
  rg::manual_seed(seed);
  const Tensor loss = f(x);
  return {rg::autograd::grad({loss}, {x})[0], rg::default_generator().state().offset};
}

}  // namespace

TEST_CASE("numbers that a traceable hook draws are drawn in each backward") {
  const auto body = [](const Tensor& x) {
    const Tensor y = rg::exp(x) * rg::rand({4});
    y.register_hook([](const Tensor& g) { return g * rg::rand({4}); }).set_traceable();
    return rg::sum(y * rg::rand({4}));
  };
  auto f = rg::compile(body);
  const Tensor x = parameter({4}, 1);
  for (const uint64_t seed : {1, 2, 2, 3}) {
    const auto [expected, place] = gradient(seed, body, x);
    const auto [got, place_now] = gradient(seed, f, x);
    check_same({expected}, {got});
    CHECK(place == place_now);
  }
  CHECK(f.stats().captures == 1);

  // Two backwards of one loss, and forwards between.
  const auto twice = [&](auto& function) {
    rg::manual_seed(7);
    const Tensor a = function(x), b = function(x);
    Tensors gradients{rg::autograd::grad({a}, {x}, {}, /*retain_graph=*/true)[0]};
    gradients.push_back(rg::autograd::grad({b}, {x})[0]);
    gradients.push_back(rg::autograd::grad({a}, {x})[0]);
    gradients.push_back(rg::rand({4}));
    return gradients;
  };
  check_same(twice(body), twice(f));
}

TEST_CASE("a gradient that a leaf has is saved as it is in that run") {
  const Tensor other = parameter({4}, 2);
  const auto body = [&](const Tensor& x) { return rg::sum(rg::exp(x) * other.grad()); };
  auto f = rg::compile(body);
  const Tensor x = parameter({4}, 1);
  for (int i = 0; i < 3; ++i) {
    other.set_grad(spread(rg::Shape{4}, static_cast<uint64_t>(10 + i)));
    const auto [expected, unused] = gradient(0, body, x);
    rg::manual_seed(0);
    const Tensor loss = f(x);
    other.set_grad(spread(rg::Shape{4}, 99));
    check_same({expected}, {rg::autograd::grad({loss}, {x})[0]});
  }
}
