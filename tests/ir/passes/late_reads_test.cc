// Values of a device that only outputs need are read at the end; reads that something else needs stay where they are.
#include "ir/passes/late_reads.h"

#include <catch2/catch.hpp>

#include "ir/text.h"
#include "ops/all_ops.h"

using namespace retrograd;

namespace {

// The nodes' names after the pass.
std::string order(const std::string& text) {
  ir::Graph graph = ir::parse(text, ops::find_op);
  ir::late_reads(graph);
  std::string names;
  for (const ir::Node& n : graph.nodes()) names += std::string(n.op->name) + " ";
  return names;
}

}  // namespace

TEST_CASE("reads for outputs, and what is made of them on the CPU, come last") {
  CHECK(order(R"(graph @g(%0: f32[4] cuda:0) {
  %1 = exp %0 : f32[4] cuda:0
  %2 = to_device %1 : f32[4]
  %3 = neg %2 : f32[4]
  %4 = sin %1 : f32[4] cuda:0
  %5 = cos %4 : f32[4] cuda:0
  return %3, %5
}
)") == "exp sin cos to_device neg ");
}

TEST_CASE("a read that the device needs again stays, and so does one of memory that others see") {
  CHECK(order(R"(graph @g(%0: f32[4] cuda:0) {
  %1 = exp %0 : f32[4] cuda:0
  %2 = to_device %1 : f32[4]
  %3 = neg %2 : f32[4]
  %4 = to_device %3 {device=cuda:0} : f32[4] cuda:0
  %5 = cos %4 : f32[4] cuda:0
  return %3, %5
}
)") == "exp to_device neg to_device cos ");
  CHECK(order(R"(graph @g(%0: f32[4] cuda:0) {
  %1 = to_device %0 : f32[4]
  %2 = cos %0 : f32[4] cuda:0
  return %1, %2
}
)") == "to_device cos ");
}

TEST_CASE("what takes much memory is read where it stands, and a graph on the CPU is left alone") {
  CHECK(order(R"(graph @g(%0: f32[300000] cuda:0) {
  %1 = exp %0 : f32[300000] cuda:0
  %2 = to_device %1 : f32[300000]
  %3 = cos %1 : f32[300000] cuda:0
  return %2, %3
}
)") == "exp to_device cos ");
  CHECK(order(R"(graph @g(%0: f32[4]) {
  %1 = exp %0 : f32[4]
  %2 = neg %1 : f32[4]
  return %1, %2
}
)") == "exp neg ");
}
