// fold_unpack, text to text, and that an unpack of a value runs as it is: by replay.
#include <catch2/catch.hpp>

#include "ir/replay.h"
#include "ir/verify.h"
#include "tests/ir/passes/passes_test.h"

using passes_test::after;
namespace rg = retrograd;

namespace {

const std::string kForwardAndBackward =
    R"(graph @step(%0: f32[2], %1: f32[2], !2: slot f32[2], @3: leaf f32[2]) {
  %2 = mul %0, %0 : f32[2]
  %3 = unpack %0 : f32[2]
  %4 = unpack !2 : f32[2]
  %5 = unpack %2 : f32[2]
  %6 = mul %1, %3 : f32[2]
  %7 = add %4, %5 : f32[2]
  accumulate_grad @3, %6
  return %7, %5
}
)";

}  // namespace

TEST_CASE("an unpack of a value of the graph is that value") {
  CHECK(after("fold_unpack", kForwardAndBackward) ==
        R"(graph @step(%0: f32[2], %1: f32[2], !2: slot f32[2], @3: leaf f32[2]) {
  %2 = mul %0, %0 : f32[2]
  %3 = unpack !2 : f32[2]
  %4 = mul %1, %0 : f32[2]
  %5 = add %3, %2 : f32[2]
  accumulate_grad @3, %4
  return %5, %2
}
)");
}

TEST_CASE("where it stays, it gives that value") {
  const rg::ir::Graph graph = ir_test::parse(kForwardAndBackward);
  const rg::Tensor leaf = rg::zeros({2}).requires_grad_();
  std::vector<rg::ir::Binding> bindings(4);
  for (size_t i = 0; i < 3; ++i) bindings[i].tensor = rg::tensor({2.0 * i + 1, 2.0 * i + 2});
  bindings[3].leaf = leaf.get();
  const rg::Tensors out = rg::ir::replay(graph, rg::eager_runner(), bindings);
  CHECK(out[0].to_vector() == std::vector<double>{6, 10});
  CHECK(out[1].to_vector() == std::vector<double>{1, 4});
  CHECK(leaf.grad().to_vector() == std::vector<double>{3, 8});
}

TEST_CASE("an unpack has a slot or a value") {
  const auto problem = [](const std::string& node) {
    return ir_test::error_of<rg::Error>(
        [&] { ir_test::parse("graph @g(%0: f32[2], !1: slot f32[2]) {\n  " + node + "\n}\n"); });
  };
  CHECK(problem("%1 = unpack %0 : f32[2]") == "");
  CHECK(problem("%1 = unpack !1, %0 : f32[2]").find("unpack takes a slot or an operand, not both") !=
        std::string::npos);
  CHECK(problem("%1 = unpack %0, %0 : f32[2]").find("unpack takes a slot or 1 operand, not 2 operands") !=
        std::string::npos);
  CHECK(problem("%1 = unpack none : f32[2]").find("operand 0 of unpack is missing") != std::string::npos);
  CHECK(problem("%1 = unpack %0 : f32[3]").find("expected type f32[2] for result 0 of unpack, not f32[3]") !=
        std::string::npos);
  CHECK(problem("%1 = unpack : f32[2]").find("acts on a slot, and none is named") != std::string::npos);
}
