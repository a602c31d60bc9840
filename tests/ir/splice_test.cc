// Appending the nodes of one graph to another, and cutting one in two (ir/splice.h): text to text. Not tested here:
// computed values (tests/tracer/compile_ahead_test.cc).
#include "ir/splice.h"

#include <catch2/catch.hpp>

#include "ir/verify.h"
#include "tests/ir/ir_test.h"

namespace rg = retrograd;
namespace ir = rg::ir;
using ir_test::parse;

namespace {

// `to` with `what` appended, whose outputs then are its own.
std::string spliced(ir::Graph& to, const ir::Graph& what, const std::vector<ir::ValueId>& inputs) {
  REQUIRE(ir::can_be_spliced(what));
  const std::vector<ir::ValueId> before = to.outputs();
  const std::vector<ir::ValueId> outputs = ir::splice(to, what, inputs);
  CHECK(to.outputs() == before);
  to.set_outputs(outputs);
  ir::verify(to);
  return to.print();
}

}  // namespace

TEST_CASE("inputs become values, results get new numbers") {
  ir::Graph to = parse("graph @g(%0: f32[4]) {\n  %1 = exp %0 : f32[4]\n  return %1\n}\n");
  const ir::Graph what = parse(
      "graph @h(%0: f32[4], %1: f32[4]) {\n  %2 = mul %1, %0 : f32[4]\n  %3 = neg %2 : f32[4]\n  return %3, "
      "%0, none\n}\n");
  CHECK(spliced(to, what, {1, 0}) ==
        "graph @g(%0: f32[4]) {\n  %1 = exp %0 : f32[4]\n  %2 = mul %0, %1 : f32[4]\n  %3 = neg %2 : f32[4]\n"
        "  return %3, %1, none\n}\n");
}

TEST_CASE("operands that are not there, several results, notes of where a node is from") {
  ir::Graph to = parse("graph @g(%0: f32[2,3]) {\n  return %0\n}\n");
  const std::string node =
      " = normalize %0, none, none {dim=[1], eps=1e-05, center=true, constant_stats=false, affine_dim=[]} : "
      "f32[2,3], f32[2,1], f32[2,1]";
  const std::string used = "  // layer_norm#3 grad, model.cc:10\n";
  {
    const ir::Graph what = parse("graph @h(%0: f32[2,3]) {\n  %1, %2, %3" + node + used +
                                 "  %4 = mul %2, %3 : f32[2,1]" + used + "  return %1, %4\n}\n");
    spliced(to, what, {0});
  }  // its texts are freed
  std::string last = "  %4 = mul %2, %3 : f32[2,1]";
  last.resize(60, ' ');
  CHECK(to.print() ==
        "graph @g(%0: f32[2,3]) {\n  %1, %2, %3" + node + used + last + used + "  return %1, %4\n}\n");
}

TEST_CASE("graphs with symbols, with effects and of more than values are not taken") {
  CHECK_FALSE(ir::can_be_spliced(
      parse("graph @h[s0 = 2](%0: f32[s0]) {\n  %1 = exp %0 : f32[s0]\n  return %1\n}\n")));
  CHECK_FALSE(ir::can_be_spliced(
      parse("graph @h(%0: f32[2], $1: hook) {\n  %1 = hook $1, %0 : f32[2]\n  return %1\n}\n")));
  CHECK_FALSE(ir::can_be_spliced(parse("graph @h(%0: f32[2], @1: leaf f32[2]) {\n  return %0\n}\n")));
}

TEST_CASE("inputs without a value, and handles, become inputs; groups get new numbers") {
  ir::Graph to =
      parse("graph @g(%0: f32[2]) {\n  %1 = exp %0 : f32[2]\n  %2 = neg %1 : f32[2]\n  return %2\n}\n");
  for (size_t n : {0, 1}) to.set_group(n, 0);
  ir::Graph what = parse(
      "graph @h(%0: f32[2], %1: f32[2], $2: hook) {\n  %2 = mul %0, %1 : f32[2]\n  %3 = sin %2 : f32[2]\n"
      "  %4 = hook $2, %3 : f32[2]\n  return %4\n}\n");
  for (size_t n : {0, 1}) what.set_group(n, 0);
  const std::vector<ir::ValueId> inputs{2, ir::kNoValue, ir::kNoValue};
  to.set_outputs(ir::splice(to, what, inputs));
  ir::verify(to);
  CHECK(to.print() ==
        "graph @g(%0: f32[2], %1: f32[2], $2: hook) {\n  group {\n    %2 = exp %0 : f32[2]\n"
        "    %3 = neg %2 : f32[2]\n  }\n  group {\n    %4 = mul %3, %1 : f32[2]\n    %5 = sin %4 : f32[2]\n  "
        "}\n"
        "  %6 = hook $2, %5 : f32[2]\n  return %6\n}\n");
}

TEST_CASE("the second part of a graph reads the first through inputs, each value once") {
  const ir::Graph graph = parse(
      "graph @g(%0: f32[2], %1: f32[2]) {\n  %2 = exp %0 : f32[2]\n  %3 = neg %2 : f32[2]\n"
      "  %4 = mul %2, %1 : f32[2]\n  %5 = mul %4, %2 : f32[2]\n  %6 = mul %5, %0 : f32[2]\n  return %3, %6, "
      "%3\n}\n");
  const ir::Cut cut = ir::cut(graph, {.inputs = 1, .nodes = 2, .outputs = 1});
  ir::verify(cut.first);
  ir::verify(cut.second);
  CHECK(cut.first.print() ==
        "graph @backward(%0: f32[2]) {\n  %1 = exp %0 : f32[2]\n  %2 = neg %1 : f32[2]\n  return %2\n}\n");
  CHECK(cut.passed == std::vector<ir::ValueId>{1, 0, 2});
  CHECK(cut.second.print() ==
        "graph @backward(%0: f32[2], %1: f32[2], %2: f32[2], %3: f32[2]) {\n  %4 = mul %1, %0 : f32[2]\n"
        "  %5 = mul %4, %1 : f32[2]\n  %6 = mul %5, %2 : f32[2]\n  return %6, %3\n}\n");
}
