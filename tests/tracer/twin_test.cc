// The twin check: what it finds in forwards, backwards and steps, with its line; that it changes nothing, and finds
// nothing where nothing changed; RETROGRAD_CHECK; and explain(). The table of docs/compile.md is executed by
// tests/docs/frozen_or_live_test.cc.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"
#include "tracer/function/twin.h"
#include "tracer/observe/checks.h"

namespace {
using namespace scenario;

const rg::CompileOptions kEachCall{.twin_calls = 1};

Tensor input(int64_t rows = 4) { return parameter(rg::Shape{rows, 3}, 1); }

bool has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  UNSCOPED_INFO(text << "\nlacks " << part);
  return false;
}
}  // namespace

TEST_CASE("the first operation that differs is named, with its line") {
  double beta = 0.5;
  Tensor scale = rg::ones({3});
  bool doubled = false, more = false;
  const int line = __LINE__ + 2;
  const auto f = [&](const Tensor& x) {
    Tensor y = rg::tanh(x) * beta;
    y = doubled ? rg::exp(y) : rg::sin(y);
    y = y + scale;
    if (more) y = rg::sqrt(rg::abs(y));
    return rg::sum(y);
  };
  const auto after = [&](const std::function<void()>& change) {
    auto compiled = rg::compile(f, kEachCall);
    compiled(input()), compiled(input());
    CHECK(compiled.stats().twins == 1);
    change();
    return error_of([&] { compiled(input()); });
  };
  const auto at = [line](const char* op, int later) {
    return op + (" at twin_test.cc:" + std::to_string(line + later));
  };
  CHECK(has(after([&] { beta = 0.25; }),
            at("mul", 0) + " has {scalar=0.25} where the recording has {scalar=0.5}"));
  CHECK(has(after([&] { doubled = true; }), at("exp", 1) + " is where the recording has " + at("sin", 1)));
  CHECK(has(after([&] { scale = rg::full({3}, 2.0); }),
            at("add", 2) + " has another tensor from outside, f32[3]"));
  CHECK(has(after([&] { more = true; }), at("abs", 3) + " is where the recording has " + at("sum", 4)));
}

TEST_CASE("what each run reads again is no difference, and the check changes nothing") {
  const auto train = [](int64_t twin_calls) {
    rg::manual_seed(3);
    Tensor w = spread(rg::Shape{3}, 5).requires_grad_();
    rg::optim::AdamW adam({w}, {.lr = 0.1});
    rg::Live<double> beta = 1.0;
    auto step = rg::compile_step(
        [&](const Tensor& x) {
          const Tensor loss = rg::sum(rg::dropout(x * w * beta, 0.5));
          loss.backward();
          adam.step();
          adam.zero_grad();
          return loss;
        },
        {.twin_calls = twin_calls});
    std::vector<double> losses;
    for (int64_t i = 0; i < 6; ++i) {
      losses.push_back(step(spread(rg::Shape{i < 3 ? 4 : 2 + i, 3}, 1)).template item<double>());
      beta = 1.0 / static_cast<double>(i + 1);
      adam.set_lr(0.1 / static_cast<double>(i + 1));
    }
    CHECK(step.stats().captures == 2);
    CHECK(step.stats().twins == (twin_calls == 1 ? 4 : twin_calls == 3 ? 1 : 0));
    losses.push_back(rg::sum(w).item<double>());
    losses.push_back(rg::rand({1}).item<double>());
    return losses;
  };
  const std::vector<double> wanted = train(0);
  CHECK(train(1) == wanted);
  CHECK(train(3) == wanted);
}

TEST_CASE("sizes that are symbols are compared as symbols, whatever sizes are equal now") {
  double beta = 0.5;
  auto compiled = rg::compile(
      [&](const Tensor& x, const Tensor& y) { return rg::sum(x * beta) + rg::sum(rg::mm(rg::t(y), y)); },
      kEachCall);
  for (const auto& [n, m] : {std::pair{4, 5}, {6, 5}, {7, 8}, {5, 5}, {9, 9}, {3, 2}})
    compiled(input(n), input(m));
  CHECK(compiled.stats().captures == 3);
  beta = 0.25;
  CHECK(has(error_of([&] { compiled(input(5), input(4)); }), "{scalar=0.25}"));
}

TEST_CASE("what only the backward does is compared, too") {
  double beta = 0.5;
  auto compiled = rg::compile(
      [&](const Tensor& x) {
        const Tensor y = rg::tanh(x);
        y.register_hook([&](const Tensor& g) { return g * beta; }).set_traceable();
        return rg::sum(y);
      },
      kEachCall);
  for (int i = 0; i < 3; ++i) compiled(input()).backward();
  beta = 0.25;
  CHECK(has(error_of([&] { compiled(input()); }), "in its backward, mul at twin_test.cc"));
}

TEST_CASE("functions that call user code are checked as far as they are recorded") {
  double beta = 0.5;
  int hooks = 0;
  auto compiled = rg::compile(
      [&](const Tensor& x) {
        const Tensor y = rg::tanh(x) * beta;
        y.register_hook([&](const Tensor& g) {
          ++hooks;
          return g;
        });
        return rg::sum(y);
      },
      kEachCall);
  for (int i = 0; i < 3; ++i) compiled(input()).backward();
  CHECK(hooks == 3);  // not called for a check
  beta = 0.25;
  CHECK(has(error_of([&] { compiled(input()); }), "{scalar=0.25}"));
}

TEST_CASE("a step that fails its check has changed nothing") {
  const Tensor w = spread(rg::Shape{3}, 5).requires_grad_();
  rg::optim::SGD sgd({w}, {.lr = 0.1, .momentum = 0.9});
  double beta = 0.5;
  auto step = rg::compile_step(
      [&](const Tensor& x) {
        const Tensor loss = rg::sum(x * w * beta);
        loss.backward();
        sgd.step();
        sgd.zero_grad();
        return loss;
      },
      kEachCall);
  const Tensor x = spread(rg::Shape{4, 3}, 1);
  step(x), step(x);
  const std::vector<double> before = values(w);
  beta = 0.25;
  CHECK(has(error_of([&] { step(x); }), "is not what was recorded"));
  CHECK(values(w) == before);
  beta = 0.5;
  step(x);
  CHECK(values(w) != before);
}

TEST_CASE("constants that the function makes are compared by their bits") {
  double beta = 0.5;
  auto compiled = rg::compile(
      [&](const Tensor& x) {
        return rg::sum(x * rg::tensor({1.0, beta, 3.0})) + rg::sum(rg::arange(4) * rg::linspace(0, 1, 4));
      },
      kEachCall);
  for (int i = 0; i < 3; ++i) compiled(input());
  beta = 0.25;
  CHECK(has(error_of([&] { compiled(input()); }), "has another tensor from outside, f32[3]"));
}

TEST_CASE("which tensor a result is, and whose .grad is set, is compared") {
  bool flag = false;
  const Tensor a = leaf({1, 2, 3}), b = leaf({1, 2, 3});
  auto chosen = rg::compile([&](const Tensor& x, const Tensor& y) { return flag ? x : y; }, kEachCall);
  auto outside =
      rg::compile([&](const Tensor& x) { return std::tuple(rg::tanh(x), flag ? a : b); }, kEachCall);
  auto step = rg::compile_step(
      [&](const Tensor& x) {
        (flag ? a : b).set_grad(rg::sum(x, {0}));
        return rg::sum(x);
      },
      kEachCall);
  const Tensor x = spread(rg::Shape{4, 3}, 1), y = spread(rg::Shape{4, 3}, 2);
  for (int i = 0; i < 3; ++i) chosen(x, y), outside(x), step(x);
  flag = true;
  CHECK(has(error_of([&] { chosen(x, y); }), "result 0 is another tensor"));
  CHECK(has(error_of([&] { step(x); }), "another .grad is set"));
}

TEST_CASE("user code that the function did not call is found") {
  bool hooked = false, looks = false;
  auto compiled = rg::compile(
      [&](const Tensor& x) {
        const Tensor y = rg::tanh(x);
        if (hooked) y.register_hook([](const Tensor& g) { return g; });
        if (looks) rg::sum(y).item<double>();
        return rg::sum(y);
      },
      kEachCall);
  for (int64_t n : {4, 5, 6, 5}) compiled(input(n));
  hooked = true;
  CHECK(has(error_of([&] { compiled(input(5)); }), "it calls user code that it did not call"));
  hooked = false, looks = true;
  CHECK(has(error_of([&] { compiled(input(5)); }), "while the recording of the call at twin_test.cc"));
}

TEST_CASE("packed and projected layers are the same in each recording") {
  const rg::nn::LSTM lstm(nullptr, "", 3, 4, {.num_layers = 2, .bidirectional = true, .proj_size = 2});
  const rg::nn::LSTM::State state{rg::randn({4, 2, 2}), rg::randn({4, 2, 4})};
  auto compiled = rg::compile(
      [&](const Tensor& x, const Tensor& lengths) {
        const auto packed = rg::nn::utils::rnn::pack_padded_sequence(x, lengths);
        return rg::sum(lstm.forward_with_packed_input(packed, state).output.padded());
      },
      kEachCall);
  const Tensor lengths = rg::tensor(std::vector<int64_t>{3, 1}, {2}, {rg::kInt64});
  for (int64_t n : {3, 3, 5, 5, 4}) compiled(rg::randn({n, 2, 3}), lengths);
  CHECK(compiled.stats().twins == 3);
}

TEST_CASE("RETROGRAD_CHECK switches it on") {
  const auto calls = [](const char* text) {
    setenv("RETROGRAD_CHECK", text, 1);
    const int64_t n = rg::checks_of_environment().twin_calls;
    unsetenv("RETROGRAD_CHECK");
    return n;
  };
  CHECK(calls("twin") == 1);
  CHECK(calls("twin:20") == 20);
  CHECK(calls("") == 0);
  CHECK(calls("pairs") == 0);
  CHECK(calls("pairs,twin:3") == 3);
  for (const char* text : {"twins", "twin:", "twin:0", "twin:x", "twin:-1", "twin:3x", "pairs,twim"}) {
    CHECK(has(error_of([&] { calls(text); }), "RETROGRAD_CHECK"));
    unsetenv("RETROGRAD_CHECK");
  }
  setenv("RETROGRAD_CHECK", "twin:2", 1);
  auto compiled = rg::compile([](const Tensor& x) { return rg::tanh(x); });
  unsetenv("RETROGRAD_CHECK");
  for (int i = 0; i < 5; ++i) compiled(input());
  CHECK(compiled.stats().twins == 2);
}

TEST_CASE("explain() tells what is fixed and what is read at each run") {
  const Tensor w = spread(rg::Shape{3}, 5);
  rg::Live<double> beta = 1.0;
  auto compiled = rg::compile([&](const Tensor& x) {
    Tensor y = x * w * beta * 0.5;
    for (int64_t i = 0; i < x.size(0); ++i) y = y + 1.0;
    return y;
  });
  CHECK(compiled.explain().empty());
  const int call = __LINE__ + 1;
  compiled(input(4));
  const auto at = [call](int earlier) { return "twin_test.cc:" + std::to_string(call - earlier); };
  CHECK(compiled.explain() == "recorded for the call at " + at(0) + ", 7 nodes\narguments: f32[4,3]\n" +
                                  "read at each run: 1 numbers, 1 tensors from outside\nfixed numbers:\n  " +
                                  at(6) + ": mul scalar=0.5\n  " + at(5) + ": add scalar=1.0\n");
  compiled(input(2));
  CHECK(has(compiled.explain(), "recorded again unless:\n  s0 == 2\n"));
}

TEST_CASE("arguments that are views in some calls are no difference") {
  auto compiled =
      rg::compile([](const Tensor& x, const Tensor& y) { return rg::tanh(x) * y - x; }, kEachCall);
  const Tensor base = input(8).detach();
  for (int i = 0; i < 8; ++i) {
    const auto half = [&](bool view) {
      return (view ? rg::narrow(base, 0, 2, 4 + i % 3) : input(4 + i % 3)).detach();
    };
    compiled(half(i & 1), half(i & 2));
  }
  CHECK(compiled.stats().captures == 2);
}
