// Where plans put values (tracer/plan/placement.h), observed by an executor that logs its calls
// (tracer/plan/null_executor.h): what is in the arena and what is not, what shares memory, and that views keep memory.
// All tests that run plans check that results stay right.
#include <catch2/catch.hpp>

#include "ir/text.h"
#include "ops/all_ops.h"
#include "retrograd/retrograd.h"
#include "tracer/plan/null_executor.h"
#include "tracer/plan/run.h"

namespace rg = retrograd;
namespace ir = retrograd::ir;
using rg::Tensor;

namespace {

// The log of a run of the graph.
std::string run(const std::string& body, int64_t most_waste = 1 << 10) {
  const ir::Graph graph = ir::parse("graph @g(%0: f32[4,4]) {\n" + body + "}\n", rg::ops::find_op);
  const std::vector<rg::Number> numbers(1);
  rg::NullExecutor executor;
  const rg::Plan plan({.graph = graph, .values = numbers, .executor = executor, .arena_waste = most_waste});
  const Tensor input = rg::ones({4, 4});
  std::vector<ir::Binding> bindings(1);
  bindings[0].tensor = input;
  executor.clear();
  rg::run_plan(plan, std::move(bindings), numbers);
  return executor.text();
}

}  // namespace

TEST_CASE("a chain lies in one place, and what it ends as in memory of its own") {
  CHECK(run(R"(  %1 = neg %0 : f32[4,4]
  %2 = exp %1 : f32[4,4]
  %3 = neg %2 : f32[4,4]
  %4 = sum %3 {dim=[0], keepdim=false} : f32[4]
  return %4
)") == R"(arena of 64 bytes
launch neg#0 f32[4,4] at 0
launch exp#1 f32[4,4] at 0 over operand 0
launch neg#2 f32[4,4] at 0 over operand 0
allocate f32[4]
launch sum#3 f32[4]
)");
  // The chain ends as the output: no second piece of memory is needed.
  CHECK(run(R"(  %1 = neg %0 : f32[4,4]
  %2 = exp %1 : f32[4,4]
  return %2
)") == R"(allocate f32[4,4]
launch neg#0 f32[4,4]
launch exp#1 f32[4,4] over operand 0
)");
}

TEST_CASE("what is needed later is not laid over") {
  CHECK(run(R"(  %1 = neg %0 : f32[4,4]
  %2 = exp %1 : f32[4,4]
  %3 = mm %1, %2 : f32[4,4]
  %4 = sum %3 {dim=[0], keepdim=false} : f32[4]
  return %4
)") == R"(arena of 192 bytes
launch neg#0 f32[4,4] at 0
launch exp#1 f32[4,4] at 64
launch mm#2 f32[4,4] at 128
allocate f32[4]
launch sum#3 f32[4]
)");
}

TEST_CASE("a view keeps the memory of its base") {
  CHECK(run(R"(  %1 = neg %0 : f32[4,4]
  %2 = permute %1 {dims=[1, 0]} : f32[4,4]
  %3 = exp %1 : f32[4,4]
  %4 = mul %3, %2 : f32[4,4]
  %5 = neg %4 : f32[4,4]
  %6 = sum %5 {dim=[0], keepdim=false} : f32[4]
  return %6
)") == R"(arena of 128 bytes
launch neg#0 f32[4,4] at 0
launch exp#1 f32[4,4] at 64
launch mul#2 f32[4,4] at 64 over operand 0
launch neg#3 f32[4,4] at 64 over operand 0
allocate f32[4]
launch sum#4 f32[4]
)");
  // Read through a view, elements are written before they are read: not over it either.
  CHECK(run(R"(  %1 = neg %0 : f32[4,4]
  %2 = permute %1 {dims=[1, 0]} : f32[4,4]
  %3 = mul %1, %2 : f32[4,4]
  %4 = sum %3 {dim=[0], keepdim=false} : f32[4]
  return %4
)") == R"(arena of 128 bytes
launch neg#0 f32[4,4] at 0
launch mul#1 f32[4,4] at 64
allocate f32[4]
launch sum#2 f32[4]
)");
  // A view that is given away, and with it its base.
  CHECK(run(R"(  %1 = neg %0 : f32[4,4]
  %2 = permute %1 {dims=[1, 0]} : f32[4,4]
  return %2
)") == R"(allocate f32[4,4]
launch neg#0 f32[4,4]
)");
}

TEST_CASE("places are used again by other types") {
  CHECK(run(R"(  %1 = mm %0, %0 : f32[4,4]
  %2 = sum %1 {dim=[0], keepdim=false} : f32[4]
  %3 = exp %2 : f32[4]
  %4 = expand %3 {size=[4, 4]} : f32[4,4]
  %5 = mm %4, %0 : f32[4,4]
  %6 = sum %5 {dim=[0], keepdim=false} : f32[4]
  return %6
)") == R"(arena of 80 bytes
launch mm#0 f32[4,4] at 0
launch sum#1 f32[4] at 64
launch exp#2 f32[4] at 64 over operand 0
launch mm#3 f32[4,4] at 0
allocate f32[4]
launch sum#4 f32[4]
)");
}

TEST_CASE("nothing is placed where more would be live with an arena than may be") {
  // 64 bytes of %1, then as many of %2, which is given away, and 16 of %3: at most 128 at the same time, with an arena
  // for %1 144.
  const std::string body = R"(  %1 = mm %0, %0 : f32[4,4]
  %2 = mm %1, %0 : f32[4,4]
  %3 = sum %2 {dim=[0], keepdim=false} : f32[4]
  return %2, %3
)";
  CHECK(run(body, 16).starts_with("arena of 64 bytes\n"));
  CHECK(run(body, 15).find("arena") == std::string::npos);
}
