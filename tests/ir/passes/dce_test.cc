// dce, text to text.
#include <catch2/catch.hpp>

#include "tests/ir/passes/passes_test.h"

using passes_test::after;

TEST_CASE("chains without use go, whole") {
  CHECK(after("dce", R"(graph @g(%0: f32[2,3], %1: f32[3,2]) {
  %2 = mm %0, %1 : f32[2,2]
  %3 = neg %0 : f32[2,3]
  %4 = exp %3 : f32[2,3]
  %5, %6 = max %0 {dim=[1], keepdim=false} : f32[2], i64[2]
  %7 = full {size=[2], value=1.0, dtype=f32} : f32[2]
  return %6, %2
}
)") == R"(graph @g(%0: f32[2,3], %1: f32[3,2]) {
  %2 = mm %0, %1 : f32[2,2]
  %3, %4 = max %0 {dim=[1], keepdim=false} : f32[2], i64[2]
  return %4, %2
}
)");
}

TEST_CASE("effects and what they use stay, inputs too") {
  const std::string text = R"(graph @g(%0: f32[2], !1: slot f32[2], $2: hook, @3: leaf f32[2], %1: f32[2]) {
  %2 = unpack !1 : f32[2]
  %3 = neg %0 : f32[2]
  %4 = hook $2, %3 : f32[2]
  accumulate_grad @3, %3
}
)";
  CHECK(after("dce", text) == "unchanged");
}

TEST_CASE("draws may go") {
  CHECK(after("dce", R"(graph @g(%0: f32[2]) {
  %1 = uniform {size=[2], from=0.0, to=1.0, dtype=f32, seed=1, offset=2} : f32[2]
  return %0, none
}
)") == "graph @g(%0: f32[2]) {\n  return %0, none\n}\n");
}
