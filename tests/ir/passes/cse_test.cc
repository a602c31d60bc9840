// cse, text to text.
#include <catch2/catch.hpp>

#include "tests/ir/passes/passes_test.h"

using passes_test::after;

TEST_CASE("equal nodes become one, and then those that use them") {
  CHECK(after("cse", R"(graph @g[s0 = 4](%0: f32[s0], %1: f32[s0]) {
  %2 = mul %0, %1 : f32[s0]
  %3 = mul %0, %1 : f32[s0]
  %4 = exp %2 : f32[s0]
  %5 = exp %3 : f32[s0]
  %6 = add %4, %5 : f32[s0]
  return %6
}
)") == R"(graph @g[s0 = 4](%0: f32[s0], %1: f32[s0]) {
  %2 = mul %0, %1 : f32[s0]
  %3 = exp %2 : f32[s0]
  %4 = add %3, %3 : f32[s0]
  return %4
}
)");
}

TEST_CASE("operands of commutative ops in either order, numbers among them") {
  CHECK(after("cse", R"(graph @g(%0: f32[2], %1: f32[2]) {
  %2 = mul %0, %1 : f32[2]
  %3 = mul %1, %0 : f32[2]
  %4 = add %2, 2.0 : f32[2]
  %5 = add 2.0, %3 : f32[2]
  %6 = sub %0, %1 : f32[2]
  %7 = sub %1, %0 : f32[2]
  %8 = cat %4, %5, %6, %7 {dim=0} : f32[8]
  return %8
}
)") == R"(graph @g(%0: f32[2], %1: f32[2]) {
  %2 = mul %0, %1 : f32[2]
  %3 = add %2, 2.0 : f32[2]
  %4 = sub %0, %1 : f32[2]
  %5 = sub %1, %0 : f32[2]
  %6 = cat %3, %3, %4, %5 {dim=0} : f32[8]
  return %6
}
)");
}

TEST_CASE("what differs in an attribute, a type or a symbol stays") {
  const std::string text = R"(graph @g[s0 = 2, s1 = 2.0, s2 = 2.0](%0: f32[s0,s0], %1: f32[]) {
  %2 = sum %0 {dim=[0], keepdim=false} : f32[s0]
  %3 = sum %0 {dim=[1], keepdim=false} : f32[s0]
  %4 = mul %0, s1 : f32[s0,s0]
  %5 = mul %0, s2 : f32[s0,s0]
  %6 = mul %0, 0.0 : f32[s0,s0]
  %7 = mul %0, -0.0 : f32[s0,s0]
  %8 = mul %0, 0 : f32[s0,s0]
  %9 = expand %1 {size=[s0]} : f32[s0]
  %10 = expand %1 {size=[2]} : f32[2]
  %11 = uniform {size=[2], from=0.0, to=1.0, dtype=f32, seed=1, offset=2} : f32[2]
  %12 = uniform {size=[2], from=0.0, to=1.0, dtype=f32, seed=1, offset=2} : f32[2]
  return %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12
}
)";
  CHECK(after("cse", text) == "unchanged");
}

TEST_CASE("two outputs do not become one, nor two gradients of leaves") {
  const std::string text = R"(graph @g(%0: f32[2], @1: leaf f32[2], @2: leaf f32[2]) {
  %1 = neg %0 : f32[2]
  %2 = neg %0 : f32[2]
  %3 = exp %0 : f32[2]
  %4 = exp %0 : f32[2]
  accumulate_grad @1, %1
  accumulate_grad @2, %2
  return %3, %4
}
)";
  CHECK(after("cse", text) == "unchanged");
}

TEST_CASE("an output may be used in the graph, too") {
  CHECK(after("cse", R"(graph @g(%0: f32[2]) {
  %1 = neg %0 : f32[2]
  %2 = neg %0 : f32[2]
  %3 = exp %2 : f32[2]
  return %1, %3
}
)") == R"(graph @g(%0: f32[2]) {
  %1 = neg %0 : f32[2]
  %2 = exp %1 : f32[2]
  return %1, %2
}
)");
}

TEST_CASE("memory that others may write to is read again after an effect; views of it are not reads") {
  CHECK(after("cse", R"(graph @g(%0: f32[2,3], $1: hook, %1: f32[3,2]) {
  %2 = permute %0 {dims=[1,0]} : f32[3,2]
  %3 = add %2, %1 : f32[3,2]
  %4 = neg %1 : f32[3,2]
  %5 = neg %1 : f32[3,2]
  %6 = exp %4 : f32[3,2]
  hook $1
  %7 = permute %0 {dims=[1,0]} : f32[3,2]
  %8 = add %7, %1 : f32[3,2]
  %9 = exp %5 : f32[3,2]
  %10 = cat %3, %6, %8, %9 {dim=0} : f32[12,2]
  return %10
}
)") == R"(graph @g(%0: f32[2,3], $1: hook, %1: f32[3,2]) {
  %2 = permute %0 {dims=[1,0]} : f32[3,2]
  %3 = add %2, %1 : f32[3,2]
  %4 = neg %1 : f32[3,2]
  %5 = exp %4 : f32[3,2]
  hook $1
  %6 = add %2, %1 : f32[3,2]
  %7 = cat %3, %5, %6, %5 {dim=0} : f32[12,2]
  return %7
}
)");
}

TEST_CASE("what contiguous gives may be a copy: it is shared unless a view of it is handed out") {
  const auto text = [](const std::string& rest) {
    return R"(graph @g(%0: f32[2,3], $1: hook) {
  %1 = contiguous %0 : f32[2,3]
  %2 = view %1 {size=[6]} : f32[6]
)" + rest;
  };
  CHECK(after("cse", text(R"(  %3 = contiguous %0 : f32[2,3]
  %4 = view %3 {size=[6]} : f32[6]
  %5 = add %2, %4 : f32[6]
  return %5
}
)")) == text(R"(  %3 = add %2, %2 : f32[6]
  return %3
}
)"));
  CHECK(after("cse", text(R"(  %3 = hook $1, %2 : f32[6]
  %4 = contiguous %0 : f32[2,3]
  %5 = view %4 {size=[6]} : f32[6]
  %6 = add %3, %5 : f32[6]
  return %6
}
)")) == "unchanged");
}

TEST_CASE("two equal nodes stay where the first one's value would be held over the peak") {
  // %1 would be held while %3 and %4 are made, which is the peak without it.
  const std::string text = R"(graph @g(%0: f32[100]) {
  %1 = full {size=[100], value=1.0, dtype=f32} : f32[100]
  %2 = sum %1 {dim=[0], keepdim=false} : f32[]
  %3 = flip %0 {dims=[0]} : f32[100]
  %4 = cat %3, %3 {dim=0} : f32[200]
  %5 = sum %4 {dim=[0], keepdim=false} : f32[]
  %6 = full {size=[100], value=1.0, dtype=f32} : f32[100]
  %7 = add %6, %5 : f32[100]
  %8 = full {size=[100], value=1.0, dtype=f32} : f32[100]
  %9 = mul %8, %2 : f32[100]
  %10 = cat %7, %9 {dim=0} : f32[200]
  return %10
}
)";
  // The third is the second one: there it is not the peak.
  CHECK(after("cse", text) == R"(graph @g(%0: f32[100]) {
  %1 = full {size=[100], value=1.0, dtype=f32} : f32[100]
  %2 = sum %1 {dim=[0], keepdim=false} : f32[]
  %3 = flip %0 {dims=[0]} : f32[100]
  %4 = cat %3, %3 {dim=0} : f32[200]
  %5 = sum %4 {dim=[0], keepdim=false} : f32[]
  %6 = full {size=[100], value=1.0, dtype=f32} : f32[100]
  %7 = add %6, %5 : f32[100]
  %8 = mul %6, %2 : f32[100]
  %9 = cat %7, %8 {dim=0} : f32[200]
  return %9
}
)");
}
