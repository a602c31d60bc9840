// Live numbers: read again at each run of recorded functions, steps and captured backwards.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {
using namespace scenario;
using rg::Live;

const Tensor kX = spread(rg::Shape{4, 3}, 1);

Tensor input() { return kX.clone().requires_grad_(); }
}  // namespace

TEST_CASE("a live number is the present one in eager code, and copies share it") {
  Live<double> beta = 2.0;
  const Live<double> copy = beta;
  const Tensor x = leaf({1, 2});
  CHECK(values(x * beta) == std::vector<double>{2, 4});
  beta = 3.0;
  CHECK(values(copy * x) == std::vector<double>{3, 6});
  CHECK(copy.value() == 3.0);
  CHECK(rg::Scalar(copy).to_double() == 3.0);
  Live<int64_t> n = 2;
  n = 5;
  CHECK(values(x + n) == std::vector<double>{6, 7});
  CHECK(rg::Scalar(n).kind() == rg::Number::Kind::Int);
  CHECK(values(rg::zeros({n, 1})).size() == 5);
}

TEST_CASE("a compiled function reads it at each run; its gradients use the number of their forward") {
  Live<double> beta = 2.0;
  const auto function = [=](const Tensor& x) { return rg::sum(rg::tanh(x * beta) + rg::pow(x, 2) / beta); };
  auto compiled = rg::compile(function);
  for (const double now : {2.0, 0.5, -1.5, 0.5}) {
    beta = now;
    const Tensor a = input(), b = input();
    const Tensor eager = function(a), plan = compiled(b);
    beta = 100.0;  // the backward is not affected
    check_same({eager}, {plan});
    eager.backward(), plan.backward();
    check_same({a.grad()}, {b.grad()});
  }
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("a step reads it at each run, also in several places and in its optimizer's closure") {
  const auto train = [](bool recorded) {
    const Tensor w = spread(rg::Shape{3}, 5).requires_grad_();
    rg::optim::SGD sgd({w}, {.lr = 0.1});
    Live<double> beta = 1.0;
    Live<int64_t> shift = 1;
    const auto body = [=, &sgd](const Tensor& x) {
      const Tensor loss = rg::sum(x * w * beta + beta) * shift;
      loss.backward();
      sgd.step();
      sgd.zero_grad();
      return loss;
    };
    auto step = rg::compile_step(body);
    Tensors all;
    for (int i = 0; i < 4; ++i) {
      beta = 1.0 / (i + 1);
      shift = i;
      all.push_back((recorded ? step(kX) : body(kX)).detach());
    }
    if (recorded) CHECK(step.stats().captures == 1);
    all.push_back(w.detach());
    return all;
  };
  check_same(train(false), train(true));
}

TEST_CASE("a captured backward reads it in a traceable hook at each run") {
  Live<double> scale = 2.0;
  const Tensor x = leaf({1, 2});
  x.register_hook([=](const Tensor& g) { return g * scale; }).set_traceable();
  rg::CompiledBackward compiled;
  for (const double now : {2.0, 3.0, 0.25}) {
    scale = now;
    x.set_grad({});
    compiled(rg::sum(x * 1.0));
    CHECK(values(x.grad()) == std::vector<double>{now, now});
  }
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("a plain number of it is checked before each run") {
  Live<double> beta = 2.0;
  auto compiled = rg::compile([=](const Tensor& x) { return beta.value() > 1 ? x * 2.0 : x * 3.0; });
  const Tensor x = leaf({1});
  CHECK(values(compiled(x)) == std::vector<double>{2});
  beta = 0.5;
  CHECK(values(compiled(x)) == std::vector<double>{3});
  CHECK(compiled.stats().captures == 2);
  CHECK_THAT(compiled.last_capture_reason(), Catch::Contains("live number"));
  beta = 2.0;
  CHECK(values(compiled(x)) == std::vector<double>{2});
  CHECK(compiled.stats().captures == 2);
}

TEST_CASE(
    "a live number that decides what is recorded is checked; so is one that is no integer and decides a "
    "size") {
  Live<double> smoothing = 0.0;
  const auto function = [=](const Tensor& x) {
    return rg::Scalar(smoothing) < rg::Scalar(0.5) ? rg::sum(x * smoothing) : rg::sum(x / smoothing);
  };
  auto compiled = rg::compile(function);
  for (const double now : {0.0, 0.25, 1.0, 2.0, 0.1}) {
    smoothing = now;
    const Tensor x = input();
    check_same({function(x)}, {compiled(x)});
  }
  CHECK(compiled.stats().captures == 2);
  CHECK_THAT(compiled.last_capture_reason(), Catch::Contains("s0 < 0.5"));
  Live<double> end = 5.0;
  auto sized = rg::compile([=](const Tensor& x) { return rg::sum(rg::arange(end)) * x; });
  const Tensor x = leaf({1});
  CHECK(values(sized(x)) == std::vector<double>{10});
  end = 3.0;
  CHECK(values(sized(x)) == std::vector<double>{3});
  CHECK(sized.stats().captures == 2);
}

TEST_CASE("a live integer is a size: one recording, and a plan for each value") {
  Live<int64_t> rows = 3, end = 4;
  const auto window = [=](const Tensor& x) { return rg::tanh(rg::narrow(x, 0, 0, rows)) * rg::Dim(rows); };
  const auto counted = [=](const Tensor& x) { return rg::sum(rg::arange(end)) * x + rg::Scalar(end); };
  const auto both = [=](const Tensor& x) {
    return rg::zeros({rows, 1}) + x.view({-1, 1, 3}).select(0, 0) * end;
  };
  for (const auto& function : {std::function<Tensor(const Tensor&)>(window), {counted}, {both}}) {
    auto compiled = rg::compile(function);
    for (const auto& [r, e] : {std::pair<int64_t, int64_t>{3, 4}, {2, 7}, {4, 4}, {3, 7}, {2, 7}}) {
      rows = r, end = e;
      const Tensor a = input(), b = input();
      const Tensor eager = function(a), plan = compiled(b);
      check_same({eager}, {plan});
      rg::sum(eager * eager).backward(), rg::sum(plan * plan).backward();
      check_same({a.grad()}, {b.grad()});
    }
    CHECK(compiled.stats().captures == 1);
    CHECK(compiled.stats().plans <= 4);
  }
}

TEST_CASE("a live size beside sizes of arguments that vary, in a step, under the twin check") {
  const auto train = [](bool recorded) {
    const Tensor w = spread(rg::Shape{3, 3}, 5).requires_grad_();
    Live<int64_t> length = 2;
    const auto body = [=](const Tensor& x) {
      const Tensor loss = rg::sum(rg::matmul(rg::narrow(x, 0, 0, length), w)) / length;
      loss.backward();
      return loss;
    };
    auto step = rg::compile_step(body, {.twin_calls = 1});
    Tensors all;
    for (int i = 0; i < 8; ++i) {
      length = 2 + i % 3;
      const Tensor x = spread(rg::Shape{4 + i % 2, 3}, i);
      all.push_back((recorded ? step(x) : body(x)).detach());
    }
    all.push_back(w.grad());
    if (recorded) CHECK(step.stats().captures == 2);
    if (recorded) CHECK(step.stats().plans == 7);
    return all;
  };
  check_same(train(false), train(true));
}

TEST_CASE("where sizes are fixed, another value of a live size is another recording") {
  Live<int64_t> rows = 3;
  auto compiled = rg::compile([=](const Tensor& x) { return rg::narrow(x, 0, 0, rows); },
                              {.dynamic = rg::DynamicSizes::never});
  for (const int64_t now : {3, 2, 3, 2}) {
    rows = now;
    check_same({rg::narrow(kX, 0, 0, now)}, {compiled(kX)});
  }
  CHECK(compiled.stats().captures == 2);
  CHECK_THAT(compiled.last_capture_reason(), Catch::Contains("size"));
}
