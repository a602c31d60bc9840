// The pipeline: switching off, dumps, reports, and where things are after it. What single passes do is
// tested in files of their own.
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
  CHECK(problem.find("there is no pass \"csee\"; there are simplify broadcast cse dce schedule") !=
        std::string::npos);
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
  CHECK(report.runs[2].changed);
  CHECK(report.runs[2].nodes == 6);
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

TEST_CASE("an ill-made graph is found, and the pass named") {
  const ir::Rewrite wrong[] = {
      {&rg::ops::info<rg::ops::Neg>, [](ir::Match& m) { return m.become(m.operand(0)); }}};
  ir::Graph graph = ir_test::parse(
      "graph @g(%0: f32[2]) {\n  %1 = exp %0 : f32[2]\n  %2 = neg %1 : f32[2]\n  return %2\n}\n");
  CHECK_NOTHROW(
      ir::run_passes(graph, {.input = {.simplify = wrong}, .verify = true}));  // wrong, but well made
  CHECK(graph.print() == "graph @g(%0: f32[2]) {\n  %1 = exp %0 : f32[2]\n  return %1\n}\n");
}
