// The pass recompute: which values are computed again behind the peak, and which stay. That bits are the same and the
// peak never rises, for random graphs too: any_combination_test, peak_test.
#include <catch2/catch.hpp>

#include "ir/passes/pass.h"
#include "ir/verify.h"
#include "tests/ir/ir_test.h"

namespace rg = retrograd;
namespace ir = rg::ir;

namespace {

// The body of a graph of f32[1024] after the pass, or "unchanged". `writes`: see ir::PassInput.
std::string recomputed(const std::string& inputs, const std::string& body,
                       std::vector<ir::OutsideWrite> writes = {}) {
  const auto with_types = [](std::string text) {
    for (size_t at = 0; (at = text.find(";", at)) != text.npos;) text.replace(at, 1, " : f32[1024]\n");
    for (size_t at = 0; (at = text.find("{}", at)) != text.npos;)
      text.replace(at, 2, "{dim=0, reverse=false, exclusive=false}");
    return text;
  };
  ir::Graph graph = ir_test::parse("graph @g(" + inputs + ") {\n  " + with_types(body) + "}\n");
  ir::Remap remap;
  if (!ir::recompute(graph, {.writes = writes}, remap)) return "unchanged";
  ir::verify(graph);
  std::string text;
  for (const ir::Node& node : graph.nodes()) {
    text += (text.empty() ? "" : " ") + std::string(node.op->name) + "(";
    for (const ir::ValueId v : graph.operands(node))
      text += (text.back() == '(' ? "" : ",") + std::to_string(v);
    text += ")";
  }
  return text;
}

// An activation %2 of %1 is used before and after the peak: at %4, where three values live beside it.
const std::string kInput = "%0: f32[1024]";
std::string held(const std::string& activation, const std::string& use = "mul %2, %5") {
  return "%1 = cumsum %0 {}; %2 = " + activation + "; %3 = cumsum %2 {}; %4 = cumsum %3 {}; " +
         "%5 = mul %3, %4; %6 = " + use + "; %7 = add %6, %1; return %7\n";
}

}  // namespace

TEST_CASE("an elementwise value that is held over the peak is computed behind it") {
  CHECK(recomputed(kInput, held("tanh %1")) ==
        "cumsum(0) tanh(1) cumsum(2) cumsum(3) mul(3,4) tanh(1) mul(6,5) add(7,1)");
}

TEST_CASE("a chain is computed from what is live anyway") {
  CHECK(recomputed(kInput,
                   "%1 = cumsum %0 {}; %2 = tanh %1; %3 = neg %2; %4 = cumsum %3 {}; "
                   "%5 = cumsum %4 {}; %6 = mul %4, %5; %7 = mul %3, %6; %8 = add %7, %1; return %8\n") ==
        "cumsum(0) tanh(1) neg(2) cumsum(3) cumsum(4) mul(4,5) tanh(1) neg(7) mul(8,6) add(9,1)");
}

TEST_CASE("left alone: other ops, operands that are gone, outputs, what the peak uses") {
  CHECK(recomputed(kInput, held("cumsum %1 {}")) == "unchanged");
  CHECK(recomputed(kInput,
                   "%1 = cumsum %0 {}; %2 = tanh %1; %3 = cumsum %2 {}; %4 = cumsum %3 {}; "
                   "%5 = mul %3, %4; %6 = mul %2, %5; return %6\n") == "unchanged");
  CHECK(recomputed(kInput,
                   "%1 = cumsum %0 {}; %2 = tanh %1; %3 = cumsum %2 {}; %4 = cumsum %3 {}; "
                   "%5 = mul %3, %4; %6 = mul %2, %5; %7 = add %6, %1; return %7, %2\n") == "unchanged");
}

TEST_CASE("an input is read before its memory is written, and memory that hooks see between the same hooks") {
  const std::string from_input = "%1 = tanh %0; %2 = cumsum %1 {}; %3 = cumsum %2 {}; %4 = mul %2, %3; ";
  CHECK(recomputed(kInput, from_input + "%5 = mul %1, %4; return %5\n") ==
        "tanh(0) cumsum(1) cumsum(2) mul(2,3) tanh(0) mul(5,4)");
  CHECK(recomputed(kInput, from_input + "%5 = neg %4; %6 = mul %1, %5; return %5, %6\n", {{0, 0}}) ==
        "unchanged");
  const std::string hooked = kInput + ", $1: hook";
  CHECK(recomputed(hooked,
                   "%1 = tanh %0; %2 = cumsum %1 {}; %3 = cumsum %2 {}; %4 = mul %2, %3; "
                   "%5 = hook $1, %4; %6 = mul %1, %5; return %6\n") == "unchanged");
}
