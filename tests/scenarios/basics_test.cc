// The basics of a compiled backward: gradients equal eager's, new tensors of the same structure need no
// capture, reset, eager and compiled backwards of one graph in turn, a long common prefix, nodes with
// thousands of operands. Not tested here: custom functions (functions_test.cc) and scopes
// (scopes_test.cc).
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <sstream>

#include "ir/text.h"
#include "ops/all_ops.h"
#include "scenario.h"

using namespace scenario;

namespace {

struct Mlp {
  Tensor w1 = parameter({4, 3}, 1), b1 = parameter({4}, 5), w2 = parameter({2, 4}, 8), b2 = parameter({2}, 6);

  Tensor loss(const Tensor& x) const {
    return rg::sum(rg::relu(rg::linear(rg::relu(rg::linear(x, w1, b1)), w2, b2)));
  }
  Tensors grads() const { return {w1.grad(), b1.grad(), w2.grad(), b2.grad()}; }
};

// What a child process does for S3: 0 when all is well.
int compile_large_linear() {
  const Tensor weight = parameter({3000, 1000}, 1), bias = parameter({3000}, 2), x = spread({8, 1000}, 3);
  rg::CompiledBackward compiled = rg::compile_backward();
  auto run = [&] {
    weight.set_grad({});
    bias.set_grad({});
    compiled(rg::sum(rg::linear(x, weight, bias)));
    return weight.grad().defined() && bias.grad().to_vector()[2999] == 8;
  };
  if (!run()) return 1;
  const Tensor before = weight.grad();
  compiled.reset();
  if (!run()) return 2;
  return same_bits(before, weight.grad()) ? 0 : 3;
}

}  // namespace

TEST_CASE("a gradient is not the tensor itself") {
  const Tensor x = leaf({1, 2});
  CHECK_THROWS_AS(x.set_grad(x), rg::Error);
  CHECK(!x.grad().defined());
}

TEST_CASE("S1 Linear, ReLU, Linear, ReLU: four gradients equal to eager's") {
  run_both<Mlp>({.steps = 1, .captures = 1}, [](Mlp& mlp, Mode& mode, int) {
    mode.backward(mlp.loss(spread({5, 3}, 9)));
    for (const Tensor& g : mlp.grads()) CHECK(rg::sum(rg::abs(g)).item<double>() > 0);
    return mlp.grads();
  });
}

TEST_CASE("S2 a model rebuilt with new tensors is a hit: addresses are not structure") {
  std::vector<Mlp> alive;  // so that no address is reused
  run_both({.steps = 3, .captures = 1}, [&](Mode& mode, int) {
    alive.emplace_back();
    mode.backward(alive.back().loss(spread({5, 3}, 9)));
    return alive.back().grads();
  });
}

TEST_CASE("S3 a large linear with a reset between two runs, in three processes") {
  for (int process = 0; process < 3; ++process) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(compile_large_linear());
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
}

TEST_CASE("S4 reset leaves an empty cache and counters at zero") {
  rg::CompiledBackward compiled = rg::compile_backward();
  const Tensor x = leaf({1, 2});
  compiled(rg::sum(x * x));
  compiled(rg::sum(x * x));
  REQUIRE(compiled.stats().captures == 1);
  REQUIRE(compiled.graph() != nullptr);
  compiled.reset();
  CHECK(compiled.graph() == nullptr);
  CHECK(compiled.last_capture_reason().empty());
  const auto stats = compiled.stats();
  CHECK(stats.captures + stats.hits + stats.plans + stats.nodes + stats.unpacks == 0);
  compiled(rg::sum(x * x));
  CHECK(compiled.stats().captures == 1);
  CHECK(compiled.stats().hits == 0);
  CHECK(compiled.last_capture_reason() == "first call");
  CHECK(values(x.grad()) == std::vector<double>{6, 12});
}

TEST_CASE("S6 a value used three ways: its gradients are added") {
  struct State {
    Tensor x = leaf({0.5, -1.25, 2});
  };
  run_both<State>({.steps = 3, .captures = 1}, [](State& s, Mode& mode, int step) {
    const Tensor y = s.x * 2.0;
    mode.backward(rg::sum(s.x * y + rg::sin(y) + rg::cos(y)));
    if (mode.traced())
      CHECK(count_nodes(*mode.compiled()->graph(), "accumulate") == 3);  // two for y, one for x
    const double v = 0.5, expected = 4 * v + 2 * std::cos(2 * v) - 2 * std::sin(2 * v);
    CHECK(values(s.x.grad())[0] == Approx((step + 1) * expected).epsilon(1e-5));
    return Tensors{s.x.grad()};
  });
}

TEST_CASE("S10 a region used three times in one backward: every value is named once") {
  const Tensor w = parameter({3, 3}, 1);
  run_both({.steps = 2, .captures = 1}, [&](Mode& mode, int) {
    const auto region = [&](const Tensor& t) { return rg::tanh(rg::mm(t, w) * t); };
    const Tensor x = parameter({3, 3}, 2);
    mode.backward(rg::sum(region(region(region(x)))));
    if (mode.traced()) {
      const std::string text = mode.compiled()->graph()->print();
      std::istringstream lines(text);
      std::set<std::string> names;
      int definitions = 0;
      for (std::string line; std::getline(lines, line);)
        if (line.rfind("  %", 0) == 0) {
          ++definitions;
          names.insert(line.substr(2, line.find(' ', 2) - 2));
        }
      CHECK(definitions > 9);
      CHECK(static_cast<int>(names.size()) == definitions);
      CHECK(rg::ir::parse(text, rg::ops::find_op).print() == text);
    }
    return Tensors{x.grad()};
  });
}

TEST_CASE("S13 eager and compiled backwards of one retained graph are interchangeable") {
  rg::CompiledBackward compiled = rg::compile_backward();
  Mode eager, traced(&compiled);
  const Tensor x = leaf({2});
  const Tensor y = rg::sum(x * x);
  for (int round = 0; round < 5; ++round)
    for (Mode* mode : {&traced, &eager, &traced}) {
      x.set_grad({});
      mode->backward({y}, {}, true);
      CHECK(values(x.grad()) == std::vector<double>{4});
    }
  CHECK(compiled.stats().captures == 1);
  CHECK(compiled.stats().hits == 9);
}

TEST_CASE("S14 graphs that share a prefix are told apart, and found again") {
  const auto chain = [](const Tensor& x, int length, bool sine) {
    Tensor y = x;
    for (int i = 0; i < length; ++i) y = rg::tanh(y) * 1.5;
    return rg::sum(sine ? rg::sin(y) : rg::cos(y));
  };
  run_both({.steps = 24, .captures = 12}, [&](Mode& mode, int step) {
    const Tensor x = leaf({0.25, -0.5, 1.75});
    mode.backward(chain(x, step % 12 / 2, step % 2 == 0));
    if (mode.traced()) CHECK(mode.captures() == std::min(step + 1, 12));
    return Tensors{x.grad()};
  });
}

TEST_CASE("S15 nodes with thousands of operands are neither truncated nor mixed up") {
  const int count = 20000;
  run_both({.steps = 3, .captures = 2}, [&](Mode& mode, int step) {
    Tensors parts;
    for (int i = 0; i < count; ++i) parts.push_back(rg::full({2}, 1.0 * (i % 7)));
    const int last = step == 1 ? count - 2 : count - 1;  // which of them wants a gradient, besides the first
    const Tensor first = parts[0].requires_grad_(),
                 wanted = parts[static_cast<size_t>(last)].requires_grad_();
    const Tensor all = rg::cat(parts);
    mode.backward({all}, {rg::arange(0, 2 * count, 1, {rg::kFloat32})});
    CHECK(values(first.grad()) == std::vector<double>{0, 1});
    CHECK(values(wanted.grad()) == std::vector<double>{2.0 * last, 2.0 * last + 1});
    return Tensors{first.grad(), wanted.grad()};
  });
}

TEST_CASE("S15 all of several hundred operands get their gradients") {
  run_both({.steps = 2, .captures = 1}, [&](Mode& mode, int) {
    Tensors parts;
    for (int i = 0; i < 300; ++i) parts.push_back(leaf({1, 2}));
    mode.backward(rg::sum(rg::cat(parts) * rg::arange(0, 600, 1, {rg::kFloat32})));
    Tensors grads;
    for (int i = 0; i < 300; ++i) {
      grads.push_back(parts[static_cast<size_t>(i)].grad());
      CHECK(values(grads.back()) == std::vector<double>{2.0 * i, 2.0 * i + 1});
    }
    return grads;
  });
}
