// The pipeline: switching off, dumps, reports, and the positions of nodes after it. Single passes are tested in files
// of their own.
#include <catch2/catch.hpp>

#include "ir/verify.h"
#include "tests/ir/passes/passes_test.h"

namespace rg = retrograd;
namespace ir = rg::ir;

namespace {

const char* const kGraph = R"(graph @g[s0 = 4](%0: f32[s0], !1: slot f32[s0], @2: leaf f32[s0]) {
  %1 = neg %0 : f32[s0]                                       // neg#0 rule, a.cc:1
  %2 = unpack !1 : f32[s0]                                    // mul#1 rule, a.cc:2
  %3 = mul %1, %2 : f32[s0]                                   // mul#1 rule, a.cc:2
  %4 = mul %2, %1 : f32[s0]                                   // mul#1 rule, a.cc:3
  %5 = exp %1 : f32[s0]                                       // exp#2 rule, a.cc:4
  %6 = sub %3, %4 : f32[s0]                                   // sub#3 rule, a.cc:5
  accumulate_grad @2, %6
}
)";

}  // namespace

TEST_CASE("passes are named") {
  CHECK(ir::passes_named(nullptr).none());
  CHECK(ir::passes_named("").none());
  CHECK(ir::passes_named("all").all());
  CHECK(ir::passes_named("cse,dce").count() == 2);
  CHECK((ir::passes_named("dce") | ir::passes_named("cse,")) == ir::passes_named("dce,cse"));
  const std::string problem = ir_test::error_of<rg::Error>([] { ir::passes_named("dce,csee"); });
  CHECK(problem.find("there is no pass \"csee\"; there are simplify broadcast cse dce recompute "
                     "gated_derivatives join_updates "
                     "schedule early_updates fuse") != std::string::npos);
}

TEST_CASE("all off: the graph as it was, and a map to itself") {
  ir::Graph graph = ir_test::parse(kGraph);
  const ir::PassReport report = ir::run_passes(graph, {.off = ir::passes_named("all"), .verify = true});
  CHECK(graph.print() == kGraph);
  CHECK(report.remap.nodes == std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6});
  CHECK(report.remap.values == std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6});
  CHECK(report.remap.places == std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("nodes, values and places are mapped; lines, origins and inputs stay") {
  ir::Graph graph = ir_test::parse(kGraph);
  std::vector<std::string> dumped;
  std::string last = kGraph;
  const ir::PassReport report = ir::run_passes(
      graph, {.input = rg::rewrites::all(),
              .verify = true,
              .dump = [&](const ir::Pass& pass, const std::string& before, const std::string& after) {
                dumped.emplace_back(pass.name);
                CHECK(before == last);
                last = after;
              }});
  CHECK(dumped == std::vector<std::string>{"cse", "dce"});
  CHECK(graph.print() == last);
  CHECK(last == R"(graph @g[s0 = 4](%0: f32[s0], !1: slot f32[s0], @2: leaf f32[s0]) {
  %1 = neg %0 : f32[s0]                                       // neg#0 rule, a.cc:1
  %2 = unpack !1 : f32[s0]                                    // mul#1 rule, a.cc:2
  %3 = mul %1, %2 : f32[s0]                                   // mul#1 rule, a.cc:2
  %4 = sub %3, %3 : f32[s0]                                   // sub#3 rule, a.cc:5
  accumulate_grad @2, %4
}
)");
  CHECK(report.remap.nodes == std::vector<int32_t>{0, 1, 2, -1, -1, 3, 4});
  CHECK(report.remap.values == std::vector<int32_t>{0, 1, 2, 3, 3, -1, 4});
  CHECK(report.remap.places == std::vector<int32_t>{0, 0, 2, 2, 2, 2, 2, 5});
  const ir::PassReport::Run& cse = report.runs[ir::pass_number("cse")];
  CHECK(cse.changed);
  CHECK(cse.nodes == 6);
  CHECK(report.text().find("cse") != std::string::npos);
}

TEST_CASE("a copy of a graph is its own") {
  auto graph = std::make_unique<ir::Graph>(ir_test::parse(kGraph));
  const ir::Graph copy = graph->copy();
  CHECK(copy.print() == kGraph);
  graph.reset();
  CHECK(copy.print() == kGraph);
  ir::verify(copy);
}

TEST_CASE("a rule that says nonsense makes a graph that is well made") {
  const ir::Rewrite wrong[] = {
      {&rg::ops::info<rg::ops::Neg>, [](ir::Match& m) { return m.become(m.operand(0)); }}};
  ir::Graph graph = ir_test::parse(
      "graph @g(%0: f32[2]) {\n  %1 = exp %0 : f32[2]\n  %2 = neg %1 : f32[2]\n  return %2\n}\n");
  ir::run_passes(graph, {.input = {.simplify = wrong}, .verify = true});
  CHECK(graph.print() == "graph @g(%0: f32[2]) {\n  %1 = exp %0 : f32[2]\n  return %1\n}\n");
}

TEST_CASE("a rule cannot give a node another type, nor move it to or from memory that others see") {
  const auto after = [](const ir::Rewrite& rule, const std::string& body) {
    ir::Graph graph = ir_test::parse("graph @g(%0: f32[2,3]) {\n" + body + "}\n");
    return ir::run_passes(graph, {.input = {.simplify = {&rule, 1}}, .verify = true}).runs[0].changed;
  };
  // Its operand, of another shape.
  const ir::Rewrite reshaped{&rg::ops::info<rg::ops::Reshape>,
                             [](ir::Match& m) { return m.become(m.operand(0)); }};
  CHECK_FALSE(after(reshaped, "  %1 = view %0 {size=[6]} : f32[6]\n  return %1\n"));
  // A view that becomes a copy, of memory that others can see and of its own.
  const ir::Rewrite copied{&rg::ops::info<rg::ops::Alias>, [](ir::Match& m) {
                             return m.become(rg::ops::info<rg::ops::Clone>, {m.operand(0)}, nullptr);
                           }};
  CHECK_FALSE(after(copied, "  %1 = alias %0 : f32[2,3]\n  return %1\n"));
  CHECK(after(copied, "  %1 = exp %0 : f32[2,3]\n  %2 = alias %1 : f32[2,3]\n  return %2\n"));
  // A copy that becomes a view.
  const ir::Rewrite viewed{&rg::ops::info<rg::ops::Clone>, [](ir::Match& m) {
                             return m.become(rg::ops::info<rg::ops::Alias>, {m.operand(0)}, nullptr);
                           }};
  CHECK_FALSE(after(viewed, "  %1 = clone %0 : f32[2,3]\n  return %1\n"));
  CHECK(after(viewed, "  %1 = exp %0 : f32[2,3]\n  %2 = clone %1 : f32[2,3]\n  return %2\n"));
  CHECK_FALSE(after(viewed, "  %1 = exp %0 : f32[2,3]\n  %2 = clone %1 : f32[2,3]\n  return %2, %1\n"));
}
