// schedule, text to text, and the peaks of random graphs: never above that of the previous order. Bits are tested in
// any_combination_test.cc.
#include <catch2/catch.hpp>

#include "ir/passes/lifetimes.h"
#include "tests/ir/passes/passes_test.h"

using passes_test::after;
namespace ir = retrograd::ir;

TEST_CASE("a constant comes when it is needed") {
  CHECK(after("schedule", R"(graph @g(%0: f32[100]) {
  %1 = full {size=[100], value=1.0, dtype=f32} : f32[100]
  %2 = flip %0 {dims=[0]} : f32[100]
  %3 = flip %2 {dims=[0]} : f32[100]
  %4 = cat %3, %1 {dim=0} : f32[200]
  %5 = sum %4 {dim=[0], keepdim=false} : f32[]
  return %5
}
)") == "unchanged");  // the peak is at cat
  CHECK(after("schedule", R"(graph @g(%0: f32[100]) {
  %1 = full {size=[100], value=1.0, dtype=f32} : f32[100]
  %2 = flip %0 {dims=[0]} : f32[100]
  %3 = flip %2 {dims=[0]} : f32[100]
  %4 = sum %3 {dim=[0], keepdim=false} : f32[]
  %5 = mul %1, %4 : f32[100]
  return %5
}
)") == R"(graph @g(%0: f32[100]) {
  %1 = flip %0 {dims=[0]} : f32[100]
  %2 = flip %1 {dims=[0]} : f32[100]
  %3 = sum %2 {dim=[0], keepdim=false} : f32[]
  %4 = full {size=[100], value=1.0, dtype=f32} : f32[100]
  %5 = mul %4, %3 : f32[100]
  return %5
}
)");
}

TEST_CASE("much that becomes little does so before more is made") {
  CHECK(after("schedule", R"(graph @g(%0: f32[]) {
  %1 = expand %0 {size=[100]} : f32[100]
  %2 = flip %1 {dims=[0]} : f32[100]
  %3 = flip %1 {dims=[]} : f32[100]
  %4 = sum %2 {dim=[0], keepdim=false} : f32[]
  %5 = sum %3 {dim=[0], keepdim=false} : f32[]
  %6 = add %4, %5 : f32[]
  return %6
}
)") == R"(graph @g(%0: f32[]) {
  %1 = expand %0 {size=[100]} : f32[100]
  %2 = flip %1 {dims=[0]} : f32[100]
  %3 = sum %2 {dim=[0], keepdim=false} : f32[]
  %4 = flip %1 {dims=[]} : f32[100]
  %5 = sum %4 {dim=[0], keepdim=false} : f32[]
  %6 = add %3, %5 : f32[]
  return %6
}
)");
}

TEST_CASE("a node with a short memory peak runs when least other memory is live") {
  // %4 and %5 are there after the hook; %5 is small, and so is the value made from it. Nodes that read %2 cannot come
  // before the hook.
  CHECK(after("schedule", R"(graph @g(%0: f32[200], %1: f32[60], %2: f32[1], $3: hook) {
  %4 = flip %0 {dims=[0]} : f32[200]
  %5 = flip %1 {dims=[0]} : f32[60]
  hook $3
  %6 = cat %4, %4, %4, %4, %4, %2 {dim=0} : f32[1001]
  %7 = sum %6 {dim=[0], keepdim=false} : f32[]
  %8 = cat %5, %5, %5, %2 {dim=0} : f32[181]
  %9 = sum %8 {dim=[0], keepdim=false} : f32[]
  %10 = add %7, %9 : f32[]
  return %10
}
)") == R"(graph @g(%0: f32[200], %1: f32[60], %2: f32[1], $3: hook) {
  %3 = flip %1 {dims=[0]} : f32[60]
  %4 = flip %0 {dims=[0]} : f32[200]
  hook $3
  %5 = cat %3, %3, %3, %2 {dim=0} : f32[181]
  %6 = sum %5 {dim=[0], keepdim=false} : f32[]
  %7 = cat %4, %4, %4, %4, %4, %2 {dim=0} : f32[1001]
  %8 = sum %7 {dim=[0], keepdim=false} : f32[]
  %9 = add %8, %6 : f32[]
  return %9
}
)");
}

TEST_CASE("a node that reads memory of others stays between its effects") {
  CHECK(after("schedule", R"(graph @g(%0: f32[100], $1: hook) {
  %1 = flip %0 {dims=[0]} : f32[100]
  hook $1
  %2 = flip %0 {dims=[]} : f32[100]
  %3 = flip %2 {dims=[0]} : f32[100]
  %4 = sum %3 {dim=[0], keepdim=false} : f32[]
  %5 = mul %1, %4 : f32[100]
  hook $1
  return %5
}
)") == "unchanged");
}

TEST_CASE("a node that may fail stays between its effects, so that these have run or have not") {
  const std::string text =
      after("schedule", R"(graph @g(%0: f32[40,100], $1: hook, %1: i64[100], %2: f32[40,100]) {
  %3 = flip %1 {dims=[0]} : i64[100]
  %4 = exp %0 : f32[40,100]
  %5 = embedding %3, %4 {padding_idx=-1, scale_grad_by_freq=false, without_padding=false} : f32[100,100]
  hook $1
  %6 = add %2, 1.0 : f32[40,100]
  %7 = flip %6 {dims=[0]} : f32[40,100]
  %8 = sum %7 {dim=[0,1], keepdim=false} : f32[]
  %9 = mul %5, %8 : f32[100,100]
  %10 = amax %9 {dim=[0,1], keepdim=false, nan_ties=false} : f32[]
  return %10
}
)");
  CHECK(text == "unchanged");  // %6 reads memory of others after the hook, and so cannot come before it
}

TEST_CASE("a group moves as one") {
  CHECK(after("schedule", R"(graph @g(%0: f32[100], %1: f32[10,10]) {
  group {
    %2 = add %0, 1.0 : f32[100]
    %3 = exp %2 : f32[100]
  }
  %4 = flip %0 {dims=[0]} : f32[100]
  %5 = flip %4 {dims=[]} : f32[100]
  %6 = sum %5 {dim=[0], keepdim=false} : f32[]
  %7 = mul %3, %6 : f32[100]
  return %7
}
)") == R"(graph @g(%0: f32[100], %1: f32[10,10]) {
  %2 = flip %0 {dims=[0]} : f32[100]
  %3 = flip %2 {dims=[]} : f32[100]
  %4 = sum %3 {dim=[0], keepdim=false} : f32[]
  group {
    %5 = add %0, 1.0 : f32[100]
    %6 = exp %5 : f32[100]
  }
  %7 = mul %6, %4 : f32[100]
  return %7
}
)");
}
