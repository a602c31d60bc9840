// Calls without a plan: when a compiled function runs eagerly, and what it refuses. The list is that of
// docs/compile.md, "What runs as it is, and what is refused".
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using Catch::Contains;
using rg::Category;

// What compiling f and calling it with a leaf gives as an error; empty when there is none.
template <class F>
std::string refusal(const F& f, bool step = true) {
  const Tensor x = parameter({2, 3});
  try {
    if (step)
      rg::compile_step(f)(x);
    else
      rg::compile(f)(x);
    return {};
  } catch (const rg::Error& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("runs as it is: inside another recorded function, of which it is a part then") {
  auto inner = rg::compile([](const Tensor& x) { return rg::exp(x); });
  auto outer = rg::compile([&](const Tensor& x) { return rg::sum(inner(x)); });
  outer(leaf({1}));
  CHECK(inner.stats().captures == 0);
  CHECK(inner.stats().eager == 1);
  CHECK(inner.last_eager_reason() == "inside another recorded function");
  outer(leaf({1}));
  CHECK(inner.stats().eager == 1);
  CHECK(outer.stats().hits == 1);
}

TEST_CASE("runs as it is: forward mode, anomaly mode, AllowMutationOnSavedTensors") {
  auto f = rg::compile([](const Tensor& x) { return rg::exp(x); });
  const auto [y, tangent] =
      rg::autograd::jvp([&](const Tensors& x) { return Tensors{f(x[0])}; }, {rg::ones({2})}, {rg::ones({2})});
  CHECK(values(tangent[0]) == values(rg::exp(rg::ones({2}))));
  CHECK(f.stats().eager == 1);
  CHECK_THAT(f.last_eager_reason(), Contains("forward mode"));
  {
    rg::autograd::DetectAnomalyGuard guard;
    f(leaf({1}));
  }
  CHECK(f.last_eager_reason() == "anomaly mode is on");
  {
    rg::AllowMutationOnSavedTensors allow;
    f(leaf({1}));
  }
  CHECK_THAT(f.last_eager_reason(), Contains("AllowMutationOnSavedTensors"));
  CHECK(f.stats().eager == 3);
  CHECK(f.stats().captures == 0);
  f(leaf({1}));
  CHECK(f.stats().captures == 1);
}

TEST_CASE("refused: looking at a value, with the line that does") {
  const auto names_line = Contains("compile_refused_test.cc");
  CHECK_THAT(refusal([](const Tensor& x) { return x * rg::sum(x).item<double>(); }), names_line);
  CHECK_THAT(refusal([](const Tensor& x) { return x * rg::exp(x).to_vector()[0]; }), names_line);
  CHECK_THAT(refusal([](const Tensor& x) { return rg::nonzero(rg::gt(x, 0.0)); }), names_line);
  CHECK_THAT(refusal([](const Tensor& x) { return rg::masked_select(x, rg::gt(x, 0.0)); }), names_line);
  CHECK_THAT(refusal([](const Tensor& x) {
               const Tensor y = rg::sum(x);
               y.register_hook([](const Tensor& g) { return g * g.item<double>(); }).set_traceable();
               y.backward();
               return x;
             }),
             names_line);
}

TEST_CASE("refused: looking at a tensor from outside that the function has written to") {
  const Tensor buffer = rg::ones({2, 3});
  auto step = rg::compile_step([&](const Tensor& x) {
    const double before = buffer.to_vector()[0];
    rg::NoGradGuard off;
    buffer.add_(x);
    return x * (before + rg::select(buffer.view({1, 6}), 0, 0).to_vector()[0]);
  });
  CHECK_THROWS_WITH(step(rg::ones({2, 3})), Contains("compile_refused_test.cc"));
  auto after = rg::compile_step([&](const Tensor& x) {
    rg::NoGradGuard off;
    buffer.add_(x);
    return x * buffer.to_vector()[0];
  });
  CHECK_THROWS_WITH(after(rg::ones({2, 3})),
                    Contains("writes to this tensor") && Contains("compile_refused_test.cc"));
  CHECK(buffer.to_vector() == std::vector<double>(6, 1));
}

TEST_CASE("refused: what has a history outside") {
  const Tensor w = parameter({2, 3}, 3), h = w * 2.0;
  CHECK_THAT(refusal([&](const Tensor& x) { return x * h; }),
             Contains("has a history. Hint: make it an argument"));
  auto step = rg::compile_step([](const Tensor& x) { return x * 2.0; });
  CHECK_THROWS_WITH(step(h), Contains("argument 0 of a recorded step has a history"));
  auto f = rg::compile([](const Tensor& x) {
    rg::sum(x).backward();
    return x;
  });
  CHECK_THROWS_WITH(f(h), Contains("runs a backward beyond its arguments"));
  const Tensor buffer = rg::zeros({2, 3});
  CHECK_THAT(refusal([&](const Tensor& x) { return buffer.copy_(x); }),
             Contains("gives a tensor from outside a history"));
  CHECK_FALSE(buffer.requires_grad());
}

TEST_CASE("refused: one memory seen in two ways that cannot both be followed") {
  const Tensor shared = rg::zeros({2, 3});
  auto step = rg::compile_step([&](const Tensor& x) {
    x.add_(rg::ones({2, 3}));
    return x + shared.add_(x);
  });
  CHECK_THROWS_WITH(step(shared), Contains("also uses as a tensor from outside"));
}

TEST_CASE("an error leaves everything outside as it was, and the next call is recorded") {
  const Tensor w = parameter({3}, 1);
  bool reads = true;
  auto step = rg::compile_step([&](const Tensor& x) {
    const Tensor loss = rg::sum(w * x);
    loss.backward();
    {
      rg::NoGradGuard off;
      w.add_(w.grad(), -0.1);
    }
    return reads ? loss * loss.item<double>() : loss;
  });
  const Tensor before = w.detach().clone();
  CHECK_THROWS(step(spread({rg::Dim(3)})));
  CHECK(same_bits(before, w.detach()));
  CHECK_FALSE(w.grad().defined());
  reads = false;
  step(spread({rg::Dim(3)}));
  CHECK(step.stats().captures == 1);
  CHECK_FALSE(same_bits(before, w.detach()));
}

TEST_CASE("refused: hooks on a leaf that the function makes and returns") {
  const auto body = [](const Tensor& x) {
    const Tensor p = (x * 2.0).detach().requires_grad_();
    p.register_hook([](const Tensor& g) { return g * 3.0; });
    return p;
  };
  for (const bool step : {true, false})
    CHECK_THAT(refusal(body, step),
               Contains("a leaf that it makes. Hint: register them on the result"));
}
