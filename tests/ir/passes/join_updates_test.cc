// join_updates, text to text: which updates of optimizers become groups, for an executor that requests it, and that
// none do for the CPU. any_combination_test.cc tests that groups give the same bits,
// tests/tracer/joined_updates_test.cc that they run as one launch.
#include <catch2/catch.hpp>

#include "engine/runner.h"
#include "tests/ir/passes/passes_test.h"
#include "tracer/plan/null_executor.h"

namespace rg = retrograd;
namespace ir = rg::ir;
using passes_test::sgd;

namespace {

std::string joined(const std::string& text, rg::Executor* executor) {
  ir::PassInput input = rg::rewrites::all();
  input.executor = executor;
  return passes_test::after("join_updates", text, input);
}

std::string joined(const std::string& text) {
  rg::NullExecutor device(true);
  return joined(text, &device);
}

}  // namespace

TEST_CASE("neighbours with the same numbers are a group, whatever their sizes") {
  const std::string head = "graph @g(%0: f32[3], %1: f32[3], %2: f32[4,2], %3: f32[4,2]) {\n",
                    end = "  return %4, %5\n}\n";
  const std::string text = head + sgd(4, 0, 1, "3") + sgd(5, 2, 3, "4,2") + end;
  const auto indented = [](const std::string& line) { return "  " + line; };
  CHECK(joined(text) ==
        head + "  group {\n" + indented(sgd(4, 0, 1, "3")) + indented(sgd(5, 2, 3, "4,2")) + "  }\n" + end);
  CHECK(joined(text, &rg::cpu_executor()) == "unchanged");
  CHECK(joined(text, nullptr) == "unchanged");
  rg::NullExecutor without_graphs;
  CHECK(joined(text, &without_graphs) == "unchanged");
}

TEST_CASE("symbols count by their values at capture") {
  const std::string head =
      "graph @g[s0 = 0.1, s1 = 0.1, s2 = 0.5](%0: f32[3], %1: f32[3], %2: f32[3], %3: f32[3], %4: f32[3], "
      "%5: "
      "f32[3]) {\n";
  const std::string text = joined(head + sgd(6, 0, 1, "3", "s0") + sgd(7, 2, 3, "3", "s1") +
                                  sgd(8, 4, 5, "3", "s2") + "  return %6, %7, %8\n}\n");
  CHECK(text == head + "  group {\n  " + sgd(6, 0, 1, "3", "s0") + "  " + sgd(7, 2, 3, "3", "s1") + "  }\n" +
                    sgd(8, 4, 5, "3", "s2") + "  return %6, %7, %8\n}\n");
}

TEST_CASE("kinds that alternate are a group each") {
  const std::string head =
      "graph @g(%0: f32[3], %1: f32[3], %2: f64[3], %3: f64[3], %4: f32[3], %5: f32[3], %6: f64[3], %7: "
      "f64[3]) "
      "{\n";
  const std::string text =
      joined(head + sgd(8, 0, 1, "3") + sgd(9, 2, 3, "3", "0.1", "f64") + sgd(10, 4, 5, "3") +
             sgd(11, 6, 7, "3", "0.1", "f64") + "  return %8, %9, %10, %11\n}\n");
  CHECK(text == head + "  group {\n  " + sgd(8, 0, 1, "3") + "  " + sgd(9, 4, 5, "3") + "  }\n  group {\n  " +
                    sgd(10, 2, 3, "3", "0.1", "f64") + "  " + sgd(11, 6, 7, "3", "0.1", "f64") +
                    "  }\n  return %8, %10, %9, %11\n}\n");
}

TEST_CASE("what stands between, uses another one's result or shares its memory parts a group") {
  const std::string inputs = "graph @g(%0: f32[3], %1: f32[3], %2: f32[3], %3: f32[3]) {\n";
  // another node
  CHECK(joined(inputs + sgd(4, 0, 1, "3") + "  %5 = neg %3 : f32[3]\n" + sgd(6, 2, 5, "3") +
               "  return %4, %6\n}\n") == "unchanged");
  // the gradient is the other one's new value
  CHECK(joined(inputs + sgd(4, 0, 1, "3") + sgd(5, 2, 4, "3") + "  return %4, %5\n}\n") == "unchanged");
  // two updates of one parameter
  CHECK(joined(inputs + sgd(4, 0, 1, "3") + sgd(5, 0, 3, "3") + "  return %4, %5\n}\n") == "unchanged");
  // the gradient shows the memory that the other one writes to
  CHECK(joined(inputs + "  %4 = view %0 {size=[3]} : f32[3]\n" + sgd(5, 0, 1, "3") + sgd(6, 2, 4, "3") +
               "  return %5, %6\n}\n") == "unchanged");
  // a gradient that both read is no reason
  CHECK(joined(inputs + sgd(4, 0, 1, "3") + sgd(5, 2, 1, "3") + "  return %4, %5\n}\n") != "unchanged");
}

TEST_CASE("schedule moves a group as one, fuse leaves it") {
  const std::string text = "graph @g(%0: f32[3], %1: f32[3], %2: f32[3], %3: f32[3]) {\n" +
                           sgd(4, 0, 1, "3") + sgd(5, 2, 3, "3") + "  %6 = exp %1 : f32[3]\n" +
                           "  %7 = neg %6 : f32[3]\n  return %4, %5, %7\n}\n";
  ir::Graph graph = ir_test::parse(text);
  rg::NullExecutor device(true);
  ir::PassInput input = rg::rewrites::all();
  input.executor = &device;
  ir::run_passes(graph, {.input = input, .verify = true});
  int32_t group = -1;
  int in_groups = 0;
  for (const ir::Node& node : graph.nodes())
    if (node.op->is(rg::Trait::updates)) {
      CHECK(node.group >= 0);
      CHECK((group < 0 || node.group == group));
      group = node.group;
      ++in_groups;
    }
  CHECK(in_groups == 2);
}
