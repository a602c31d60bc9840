// The node `pack`: values that a traced backward saves itself, under create_graph, pass through the default pair if the
// graph says so. Compared with the eager backward: events in order, values, second derivatives. See docs/ir.md,
// "Bookkeeping ops".
#include <catch2/catch.hpp>

#include "ir/graph.h"
#include "retrograd/retrograd.h"

namespace rg = retrograd;

namespace {

using rg::Tensor;
using Events = std::vector<std::string>;

// Logs what it packs and unpacks; packs a copy scaled by `factor`.
rg::RefPtr<rg::SavedTensorHooks> logging_pair(Events& events, double factor = 1) {
  return rg::saved_tensor_hooks(
      [&events, factor](const Tensor& t) {
        events.push_back("pack " + std::to_string(t.dim()));
        return t * factor;
      },
      [&events, factor](const Tensor& t) {
        events.push_back("unpack " + std::to_string(t.dim()));
        return t / factor;
      });
}

struct Run {
  Events events;
  std::vector<double> first, second;
  friend bool operator==(const Run&, const Run&) = default;
};

// d/dx and d2/dx2 of sum(exp(x) * x), the first backward under the pair, and recorded.
Run twice(rg::CompiledBackward* traced, double factor = 1) {
  Run run;
  const Tensor x = rg::tensor({0.5, -1.0, 2.0}, {3}, {rg::kFloat64, rg::kCPU, true});
  const Tensor y = rg::sum(rg::exp(x) * x);
  Tensor dx;
  {
    rg::SavedTensorHooksGuard guard(logging_pair(run.events, factor));
    dx = traced ? traced->grad({y}, {x}, {}, true, true)[0] : rg::autograd::grad({y}, {x}, {}, true, true)[0];
  }
  run.events.push_back("second");
  run.first = dx.to_vector();
  run.second = rg::autograd::grad({rg::sum(dx)}, {x})[0].to_vector();
  return run;
}

int packs(const rg::ir::Graph& graph) {
  int n = 0;
  for (const rg::ir::Node& node : graph.nodes()) n += node.op->name == "pack";
  return n;
}

}  // namespace

TEST_CASE("a traced backward with create_graph packs its own saves, in eager's order") {
  rg::CompiledBackward traced = rg::compile_backward();
  const Run eager = twice(nullptr);
  REQUIRE(std::ranges::count(eager.events, "pack 1") >= 3);
  REQUIRE(std::ranges::count(eager.events, "pack 1") == std::ranges::count(eager.events, "unpack 1"));
  for (int i = 0; i < 3; ++i) CHECK(twice(&traced) == eager);
  CHECK(traced.stats().captures == 1);
  CHECK(packs(*traced.graph()) > 0);
}

TEST_CASE("a pack node comes after the call whose record saves") {
  rg::CompiledBackward traced = rg::compile_backward();
  const Tensor x = rg::ones({2}).requires_grad_();
  const Tensor y = x * x;
  Events events;
  rg::SavedTensorHooksGuard guard(logging_pair(events));
  traced.grad({y}, {x}, {rg::ones({2})}, true, true);
  const std::string text = traced.graph()->print();
  INFO(text);
  const size_t mul = text.find("= mul "), pack = text.find("pack *");
  REQUIRE(mul != std::string::npos);
  CHECK(text.find(": pair") < mul);
  CHECK(mul < pack);
  CHECK(text.find("\n  pack *", mul) == text.find('\n', mul));
}

TEST_CASE("another pair needs no new capture, a pair that comes or goes does") {
  rg::CompiledBackward traced = rg::compile_backward();
  const Run plain = twice(&traced), doubled = twice(&traced, 2);
  CHECK(plain == doubled);
  CHECK(traced.stats().captures == 1);
  const Tensor x = rg::tensor({0.5, -1.0, 2.0}, {3}, {rg::kFloat64, rg::kCPU, true});
  const Tensor y = rg::sum(rg::exp(x) * x);
  traced.grad({y}, {x}, {}, true, true);
  CHECK(traced.stats().captures == 2);
  CHECK(traced.last_capture_reason() == "there was a default pair of saved-tensor hooks");
  CHECK(packs(*traced.graph()) == 0);
}

TEST_CASE("without create_graph nothing is saved, and nothing packed") {
  rg::CompiledBackward traced = rg::compile_backward();
  const Tensor x = rg::ones({2}).requires_grad_();
  const Tensor y = x * x;
  Events events;
  rg::SavedTensorHooksGuard guard(logging_pair(events));
  traced.grad({y}, {x}, {rg::ones({2})});
  CHECK(events.empty());
  CHECK(packs(*traced.graph()) == 0);
}

TEST_CASE("a pack hook that throws ends the backward, and the next run is as if nothing had been") {
  rg::CompiledBackward traced = rg::compile_backward();
  const Run expected = twice(&traced);
  const Tensor x = rg::tensor({0.5, -1.0, 2.0}, {3}, {rg::kFloat64, rg::kCPU, true});
  const Tensor y = rg::sum(rg::exp(x) * x);
  {
    int calls = 0;
    rg::SavedTensorHooksGuard guard(
        [&](const Tensor& t) {
          if (++calls == 2) throw std::runtime_error("no room");
          return t;
        },
        [](const Tensor& t) { return t; });
    CHECK_THROWS_WITH(traced.grad({y}, {x}, {}, true, true), "no room");
  }
  CHECK(twice(&traced) == expected);
}
