// gated_derivatives, text to text: which activations are split, which are not, and that the bits do not change.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "engine/runner.h"
#include "ir/replay.h"
#include "ir/verify.h"
#include "retrograd/retrograd.h"
#include "tests/ir/passes/passes_test.h"
#include "tests/same_bits.h"

namespace rg = retrograd;
namespace ir = rg::ir;
using rg::Tensor;
using rg::testing::same_bits;

namespace {

// D stands for the dtype, A for the activation, {} for its attributes.
std::string text(std::string body, const std::string& activation = "gelu",
                 const std::string& attrs = " {tanh=true}", const std::string& dtype = "f32") {
  std::string all = "graph @g(%0: D[101], %1: D[101]) {\n" + body + "}\n";
  const auto put = [&](const std::string& what, const std::string& by) {
    for (size_t at = 0; (at = all.find(what, at)) != all.npos; at += by.size())
      all.replace(at, what.size(), by);
  };
  put("D", dtype);
  put("ACT", activation);
  put("{}", attrs);
  return all;
}

constexpr const char* kBoth =
    "  %2 = clone %0 : D[101]\n  %3 = ACT %2{} : D[101]\n  %4 = mul %3, %1 : D[101]\n"
    "  %5 = ACT_backward %1, %2{} : D[101]\n  return %4, %5\n";

// Only this pass: the pipeline would check the peak, too.
std::string split(const std::string& text) {
  ir::Graph graph = ir_test::parse(text);
  ir::Remap remap;
  if (!ir::gated_derivatives(graph, rg::rewrites::all(), remap)) return "unchanged";
  ir::verify(graph);
  return graph.print();
}

rg::Tensors run(const std::string& text, const rg::Tensors& inputs) {
  std::vector<ir::Binding> bindings;
  for (const Tensor& t : inputs) bindings.push_back({.tensor = t});
  return ir::replay(ir_test::parse(text), rg::eager_runner(), bindings);
}

}  // namespace

TEST_CASE("the gate is computed once, and the derivative next to the activation") {
  CHECK(split(text(kBoth)) ==
        text("  %2 = clone %0 : D[101]\n  %3 = ACT_gate %2{} : D[101]\n"
             "  %4 = ACT_slope %2, %3{} : D[101]\n  %5 = mul %2, %3 : D[101]\n"
             "  %6 = mul %5, %1 : D[101]\n  %7 = mul %1, %4 : D[101]\n  return %6, %7\n"));
}

TEST_CASE("an output that is none is no use") {
  const auto returning = [](std::string body, const std::string& outputs) {
    return body.replace(body.find("return"), body.npos, "return " + outputs + "\n");
  };
  CHECK(split(text(returning(kBoth, "%4, none, %5"))).find("return %6, none, %7") != std::string::npos);
}

TEST_CASE("bits are those of the activation and its backward") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values = {0.0,  -0.0,  1e-40, -1e-40, 1e-310, 0.3,    -0.7, 3.0,   -3.0, 9.5,  -9.5,
                                20.0, -20.0, 87.0,  -88.5,  130.0,  -200.0, 1e30, -1e30, inf,  -inf, NAN};
  std::vector<double> gradients;
  while (values.size() < 101) values.push_back(-1.7 + 0.03 * static_cast<double>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) gradients.push_back(1.5 - 0.3 * static_cast<double>(i % 11));
  struct {
    const char *activation, *attrs;
  } const kinds[] = {{"gelu", " {tanh=true}"}, {"gelu", " {tanh=false}"}, {"silu", ""}};
  for (const auto& kind : kinds)
    for (const char* dtype : {"f32", "f64"}) {
      const std::string before = text(kBoth, kind.activation, kind.attrs, dtype), after = split(before);
      INFO(before);
      REQUIRE(after != "unchanged");
      const rg::ScalarType type = *dtype == 'f' && dtype[1] == '3' ? rg::kFloat32 : rg::kFloat64;
      const rg::Tensors inputs = {rg::tensor(values, {101}, {type}), rg::tensor(gradients, {101}, {type})};
      const rg::Tensors expected = run(before, inputs), found = run(after, inputs);
      for (size_t i = 0; i < expected.size(); ++i) {
        const Tensor is_nan = rg::isnan(expected[i]);
        CHECK(same_bits(is_nan, rg::isnan(found[i])));
        CHECK(same_bits(rg::where(is_nan, 0, expected[i]), rg::where(is_nan, 0, found[i])));
      }
    }
}

TEST_CASE(
    "left alone: other uses later, memory that others see, formats of 16 bits, no backward, "
    "devices") {
  const std::string used_later =
      "  %2 = clone %0 : D[101]\n  %3 = ACT %2{} : D[101]\n  %4 = mul %3, %2 : D[101]\n"
      "  %5 = ACT_backward %4, %2{} : D[101]\n  return %5\n";
  CHECK(split(text(used_later)) == "unchanged");
  CHECK(
      split(text("  %2 = clone %0 : D[101]\n  %3 = ACT %2{} : D[101]\n  %4 = ACT_backward %3, %2{} : D[101]\n"
                 "  return %4, %2\n")) == "unchanged");
  CHECK(split(text("  %2 = ACT %0{} : D[101]\n  %3 = ACT_backward %2, %0{} : D[101]\n  return %3\n")) ==
        "unchanged");
  CHECK(split(text(kBoth, "gelu", " {tanh=true}", "bf16")) == "unchanged");
  CHECK(split(text("  %2 = clone %0 : D[101]\n  %3 = ACT %2{} : D[101]\n  return %3\n")) == "unchanged");
  std::string on_device = text(kBoth);
  for (size_t at = 0; (at = on_device.find("[101]", at)) != on_device.npos; at += 12)
    on_device.insert(at + 5, " cuda:0");
  CHECK(split(on_device) == "unchanged");
}

TEST_CASE("a backward with other attributes stays") {
  CHECK(split(text("  %2 = clone %0 : D[101]\n  %3 = ACT %2 {tanh=true} : D[101]\n"
                   "  %4 = ACT_backward %3, %2 {tanh=false} : D[101]\n  %5 = ACT_backward %4, %2 {tanh=true} "
                   ": D[101]\n"
                   "  return %5\n")) ==
        text("  %2 = clone %0 : D[101]\n  %3 = ACT_gate %2 {tanh=true} : D[101]\n"
             "  %4 = ACT_slope %2, %3 {tanh=true} : D[101]\n  %5 = mul %2, %3 : D[101]\n"
             "  %6 = ACT_backward %5, %2 {tanh=false} : D[101]\n  %7 = mul %6, %4 : D[101]\n  return %7\n"));
}

TEST_CASE("taken back where the gate and the slope would be the peak") {
  const auto changed = [](const std::string& text) {
    ir::Graph graph = ir_test::parse(text);
    const ir::PassReport report = ir::run_passes(
        graph,
        {.input = rg::rewrites::all(), .off = passes_test::all_but("gated_derivatives"), .verify = true});
    return std::ranges::any_of(report.runs, &ir::PassReport::Run::changed);
  };
  CHECK_FALSE(changed(text(kBoth)));
  CHECK(changed(text(
      "  %2 = clone %0 : D[101]\n  %3 = ACT %2{} : D[101]\n  %4 = mul %3, %1 : D[101]\n"
      "  %5 = cat %4, %3, %1 {dim=0} : D[303]\n  %6 = ACT_backward %1, %2{} : D[101]\n  return %5, %6\n")));
}

TEST_CASE("a compiled step has the bits of an eager one") {
  ::setenv("RETROGRAD_PASSES_OFF", "recompute", 1);  // else neither the operand nor the slope is held
  const std::function<Tensor(const Tensor&)> kinds[] = {[](const Tensor& x) { return rg::gelu(x, "tanh"); },
                                                        [](const Tensor& x) { return rg::gelu(x); },
                                                        [](const Tensor& x) { return rg::silu(x); }};
  for (const auto& activation : kinds) {
    const Tensor x = rg::randn({77, 130}), start = rg::randn({77, 130});
    const auto run = [&](bool compiled) {
      const Tensor w = start.clone().requires_grad_();
      const auto body = [&, w] {
        const Tensor y = activation(w * x), loss = rg::sum(rg::cat({y, y * x, y * y, y + x}));
        loss.backward();
        return loss;
      };
      auto step = rg::compile_step(body);
      rg::Profile profile;
      {
        const rg::ProfileScope scope(profile);
        compiled ? step() : body();
      }
      if (compiled) CHECK(profile.runs()[0].graph->print().find("_slope") != std::string::npos);
      return w.grad();
    };
    CHECK(same_bits(run(false), run(true)));
  }
  ::unsetenv("RETROGRAD_PASSES_OFF");
}
