// The rules of `broadcast`, text to text.
#include <catch2/catch.hpp>

#include "tests/rewrites/rule_cases.h"

using passes_test::after;

namespace {

std::string after_both(const std::string& text) {
  return rule_cases::after({"broadcast", "dce"}, text).print();
}

std::string graph(const std::string& body) {
  return "graph @g[s0 = 4; 1 != s0](%0: f32[3], %1: f32[s0,3], %2: bool[1,3]) {\n" + body + "}\n";
}

}  // namespace

TEST_CASE("an operand is not repeated where the op repeats it anyway") {
  CHECK(after_both(graph(R"(  %3 = expand %0 {size=[s0,3]} : f32[s0,3]
  %4 = mul %3, %1 : f32[s0,3]
  %5 = expand %2 {size=[s0,3]} : bool[s0,3]
  %6 = where %5, %4, 0.0 : f32[s0,3]
  return %6
)")) == graph(R"(  %3 = mul %0, %1 : f32[s0,3]
  %4 = where %2, %3, 0.0 : f32[s0,3]
  return %4
)"));
}

TEST_CASE("an op that takes operands of one shape only keeps them") {
  CHECK(after("broadcast", graph(R"(  %3 = expand %0 {size=[s0,3]} : f32[s0,3]
  %4 = accumulate %1, %3 : f32[s0,3]
  %5 = copy %3, %1 : f32[s0,3]
  return %4, %5
)")) == "unchanged");
}

TEST_CASE("elementwise ops come before the repetition, if elementwise ops use them") {
  // The peak is at the end: a rule that lifts it would be taken back.
  CHECK(after_both(graph(R"(  %3 = expand %0 {size=[s0,3]} : f32[s0,3]
  %4 = exp %3 : f32[s0,3]
  %5 = mul %4, 2.0 : f32[s0,3]
  %6 = add %5, %3 : f32[s0,3]
  %7 = sub %1, %6 : f32[s0,3]
  %8 = cat %7, %7 {dim=0} : f32[(s0+s0),3]
  return %8
)")) == graph(R"(  %3 = exp %0 : f32[3]
  %4 = mul %3, 2.0 : f32[3]
  %5 = add %4, %0 : f32[3]
  %6 = sub %1, %5 : f32[s0,3]
  %7 = cat %6, %6 {dim=0} : f32[(s0+s0),3]
  return %7
)"));
}

TEST_CASE("where that lifts the peak, other rules still apply") {
  const std::string recorded = graph(R"(  %3 = expand %0 {size=[s0,3]} : f32[s0,3]
  %4 = exp %3 : f32[s0,3]
  %5 = mul %4, 2.0 : f32[s0,3]
  %6 = sub %1, %5 : f32[s0,3]
  %7 = neg %6 : f32[s0,3]
  %8 = neg %7 : f32[s0,3]
  return %8
)");
  CHECK(rule_cases::after({"simplify", "broadcast", "dce"}, recorded).print() == graph(R"(  %3 = expand %0 {size=[s0,3]} : f32[s0,3]
  %4 = exp %3 : f32[s0,3]
  %5 = mul %4, 2.0 : f32[s0,3]
  %6 = sub %1, %5 : f32[s0,3]
  return %6
)"));
}

TEST_CASE("what others use has the layout that it had") {
  CHECK(after("broadcast", graph(R"(  %3 = expand %0 {size=[s0,3]} : f32[s0,3]
  %4 = exp %3 : f32[s0,3]
  %5 = sum %4 {dim=[0], keepdim=false} : f32[3]
  %6 = neg %3 : f32[s0,3]
  return %6, %5
)")) == "unchanged");
}

TEST_CASE("what is drawn for an element depends on its place") {
  CHECK(after("broadcast", graph(R"(  %3 = expand %0 {size=[s0,3]} : f32[s0,3]
  %4 = dropout %3 {p=0.5, seed=1, offset=2} : f32[s0,3]
  %5 = mul %1, %4 : f32[s0,3]
  return %5
)")) == "unchanged");
}
