// The main properties of the design: eager equals traced bit for bit, one total order of hooks and unpacks, second
// derivatives computed in two ways. Not tested here: the ops themselves (tests/ops), the conformance suites
// (tests/conformance).
#include <catch2/catch.hpp>
#include <cstring>
#include <sstream>

#include "engine/runner.h"
#include "ir/replay.h"
#include "ir/text.h"
#include "ops/all_ops.h"
#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.defined() == b.defined() &&
         (!a.defined() || (a.sizes() == b.sizes() && a.is_contiguous() && b.is_contiguous() &&
                           std::memcmp(a.raw_data(), b.raw_data(), static_cast<size_t>(a.nbytes())) == 0));
}

struct Model {
  Tensor x = rg::tensor({0.1, -0.4, 0.7, 1.3, -0.2, 0.5}, {3, 2});
  Tensor w = rg::tensor({0.3, 0.9, -0.6, 0.2}, {2, 2}, {rg::kFloat32, rg::kCPU, true});
  Tensor b = rg::tensor({0.05, -0.1}, {rg::kFloat32, rg::kCPU, true});

  Tensor loss() const {
    const Tensor h = rg::mm(x, w) + b;
    const Tensor y = h * h - h / 3.0;
    return rg::sum(y * w.select(0, 0) + rg::neg(h)) * 0.5;
  }
};

}  // namespace

TEST_CASE("eager and traced backward give the same bits") {
  Model eager, traced;
  rg::CompiledBackward backward = rg::compile_backward();
  for (int step = 0; step < 3; ++step) {
    eager.loss().backward();
    backward(traced.loss());
    REQUIRE(same_bits(eager.w.grad(), traced.w.grad()));
    REQUIRE(same_bits(eager.b.grad(), traced.b.grad()));
  }
  CHECK(backward.stats().captures == 1);
  CHECK(backward.stats().hits == 2);
}

TEST_CASE("new sizes of the same structure need no new capture") {
  rg::CompiledBackward backward = rg::compile_backward();
  for (int rows : {3, 5, 2, 7}) {
    Model eager, traced;
    eager.x = traced.x = rg::full({rows, 2}, 0.25);
    eager.loss().backward();
    backward(traced.loss());
    REQUIRE(same_bits(eager.w.grad(), traced.w.grad()));
  }
  INFO(backward.last_capture_reason());
  CHECK(backward.stats().captures <= 2);
}

TEST_CASE("numbers are inputs of the graph") {
  rg::CompiledBackward backward = rg::compile_backward();
  for (double factor : {2.0, 3.5, -1.25}) {
    Tensor x = rg::tensor({1.0, 2, 3}).requires_grad_();
    backward(rg::sum(x * factor / 4.0));
    CHECK(x.grad().to_vector()[0] == Approx(factor / 4));
  }
  CHECK(backward.stats().captures == 1);
}

TEST_CASE("hooks and unpacks run in one order, eager and traced") {
  std::vector<std::string> log;
  auto run = [&](rg::CompiledBackward* traced) {
    log.clear();
    Tensor a = rg::tensor({1.0, 2}).requires_grad_(), b = rg::tensor({3.0, 4}).requires_grad_();
    Tensor c, d;
    {
      rg::SavedTensorHooksGuard guard(
          [&](const Tensor& t) {
            log.push_back("pack " + std::to_string(int(t.to_vector()[0])));
            return t;
          },
          [&](const Tensor& t) {
            log.push_back("unpack " + std::to_string(int(t.to_vector()[0])));
            return t;
          });
      c = a * b;
      d = c * a;
    }
    c.register_hook([&](const Tensor&) {
      log.push_back("c 1");
      return Tensor();
    });
    c.register_hook([&](const Tensor& g) {
      log.push_back("c 2");
      return g * 2.0;
    });
    d.grad_fn().register_prehook([&](const Tensors&) {
      log.push_back("pre d");
      return Tensors{};
    });
    d.grad_fn().register_hook([&](const Tensors&, const Tensors&) {
      log.push_back("post d");
      return Tensors{};
    });
    a.register_hook([&](const Tensor&) {
      log.push_back("a");
      return Tensor();
    });
    a.register_post_accumulate_grad_hook([&](const Tensor& t) {
      log.push_back("post_acc a " + std::to_string(int(t.grad().to_vector()[0])));
    });
    log.push_back("backward");
    if (traced)
      (*traced)(rg::sum(d));
    else
      rg::sum(d).backward();
  };
  const std::vector<std::string> expected = {"pack 1", "pack 3",   "pack 3",   "pack 1", "backward",
                                             "pre d",  "unpack 1", "unpack 3", "post d", "c 1",
                                             "c 2",    "unpack 3", "unpack 1", "a",      "post_acc a 9"};
  auto sorted_packs =
      [](std::vector<std::string>
             v) {  // the order of packs within one op, and of unpacks within one rule, is checked apart
        std::sort(v.begin(), v.begin() + 2);
        std::sort(v.begin() + 2, v.begin() + 4);
        std::sort(v.begin() + 6, v.begin() + 8);
        std::sort(v.begin() + 11, v.begin() + 13);
        return v;
      };
  run(nullptr);
  const std::vector<std::string> eager = log;
  REQUIRE(eager.size() == expected.size());
  CHECK(sorted_packs(eager) == sorted_packs(expected));
  rg::CompiledBackward traced = rg::compile_backward();
  run(&traced);
  CHECK(log == eager);
  run(&traced);
  CHECK(log == eager);
  CHECK(traced.stats().captures == 1);
}

TEST_CASE("a Hessian-vector product by backward of backward agrees with forward over reverse") {
  const Tensor x = rg::tensor({0.3, -0.7, 1.1}, {rg::kFloat64, rg::kCPU, true});
  const Tensor v = rg::tensor({1.0, 0.5, -2.0}, {rg::kFloat64});
  auto f = [](const Tensor& t) { return rg::sum(t * t * t / (t * t + 1.0)); };
  const Tensor g = rg::autograd::grad({f(x)}, {x}, {}, {}, true)[0];
  const Tensor backward_of_backward = rg::autograd::grad({rg::sum(g * v)}, {x})[0];
  const auto forward_over_reverse = rg::autograd::jvp(
      [&](const Tensors& in) { return rg::autograd::grad({f(in[0])}, {in[0]}, {}, {}, true); }, {x}, {v});
  const auto reverse_over_forward = rg::autograd::grad(
      {rg::autograd::jvp([&](const Tensors& in) { return Tensors{f(in[0])}; }, {x}, {v}).tangents[0]},
      {x})[0];
  for (size_t i = 0; i < 3; ++i) {
    CHECK(forward_over_reverse.tangents[0].to_vector()[i] ==
          Approx(backward_of_backward.to_vector()[i]).epsilon(1e-12));
    CHECK(reverse_over_forward.to_vector()[i] == Approx(backward_of_backward.to_vector()[i]).epsilon(1e-12));
  }
}

TEST_CASE("a captured graph prints, parses to itself, and runs") {
  const Tensor x = rg::tensor({1.0, 2, 3, 4}, {2, 2}).requires_grad_();
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor gradient = backward.grad({rg::sum(rg::mm(x, x) * 3.0)}, {x})[0];
  const std::string text = backward.graph()->print();
  const rg::ir::Graph parsed = rg::ir::parse(text, rg::ops::find_op);
  CHECK(parsed.print() == text);
  std::vector<rg::ir::Binding> bindings(parsed.inputs().size());
  for (size_t i = 0; i < bindings.size(); ++i)
    bindings[i].tensor = parsed.inputs()[i].kind == rg::ir::Input::Kind::slot ? x.detach() : rg::ones({});
  const Tensors outputs = rg::ir::replay(parsed, rg::eager_runner(), bindings);
  REQUIRE(outputs.size() == 1);
  CHECK(same_bits(outputs[0], gradient));
}

TEST_CASE("a graph with an unpack and a hook reads like this") {
  Tensor x = rg::tensor({1.0, 2, 3, 4}, {2, 2}).requires_grad_();
  Tensor y = x * x;
  y.register_hook([](const Tensor& g) { return g * 0.5; });
  rg::CompiledBackward backward = rg::compile_backward();
  backward(rg::sum(y));
  std::string text;
  std::istringstream lines(backward.graph()->print());
  for (std::string line; std::getline(lines, line);
       text += line + "\n") {  // without the user's file and line
    line.erase(std::min(line.size(), line.find("  //")));
    line.erase(line.find_last_not_of(' ') + 1);
  }
  CHECK(
      text ==
      R"(graph @backward[s0 = 2; 1 != s0](%0: f32[], $1: hook, !2: slot f32[s0,s0], !3: slot f32[s0,s0], @4: leaf f32[s0,s0]) {
  %1 = contiguous %0 : f32[]
  %2 = view %1 {size=[1,1]} : f32[1,1]
  %3 = expand %2 {size=[s0,s0]} : f32[s0,s0]
  %4 = hook $1, %3 : f32[s0,s0]
  %5 = unpack !2 : f32[s0,s0]
  %6 = mul %4, %5 : f32[s0,s0]
  %7 = unpack !3 : f32[s0,s0]
  %8 = mul %4, %7 : f32[s0,s0]
  %9 = accumulate %6, %8 : f32[s0,s0]
  accumulate_grad @4, %9
}
)");
}
