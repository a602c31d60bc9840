// Joined gradients of attention for a projection: text to text, and their bits.
#include <catch2/catch.hpp>
#include <regex>

#include "ir/replay.h"
#include "tests/rewrites/rule_cases.h"
#include "tests/same_bits.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::testing::same_bits;

namespace {

// Of 2 matrices, 3 heads, 5 rows, 4 wide. `joined`: what becomes of %dq, %dk, %dv.
std::string text(const std::string& joined, const std::string& dtype = "f32",
                 const std::string& causal = "true") {
  const std::string heads = "D[2,3,5,4]", rows = "D[2,5,3,4]";
  std::string all = "graph @g(%q: " + heads + ", %k: " + heads + ", %v: " + heads + ", %o: " + rows +
                    ", %l: W[2,3,5], %g: " + rows + ") {\n" + joined + "}\n";
  all =
      std::regex_replace(all, std::regex("ATTRS"), "{is_causal=" + causal + ", scale=0.5, interleaved=true}");
  all = std::regex_replace(all, std::regex("W\\["), dtype == "f64" ? "f64[" : "f32[");
  return std::regex_replace(all, std::regex("D\\["), dtype + "[");
}

const std::string kGradients =
    "  %dq, %dk, %dv = attention_backward %q, %k, %v, %o, %l, %g ATTRS : D[2,5,3,4], D[2,5,3,4], D[2,5,3,4]\n"
    "  %a = view %dq {size=[2,5,12]} : D[2,5,12]\n  %b = view %dk {size=[2,5,12]} : D[2,5,12]\n"
    "  %c = view %dv {size=[2,5,12]} : D[2,5,12]\n";

rg::Tensors run(const rg::ir::Graph& graph, const rg::Tensors& inputs) {
  std::vector<rg::ir::Binding> bindings;
  for (const Tensor& t : inputs) bindings.push_back({.tensor = t});
  return rg::ir::replay(graph, rg::eager_runner(), bindings);
}

rg::ir::Graph simplified(const std::string& text) { return rule_cases::after({"simplify", "dce"}, text); }

}  // namespace

TEST_CASE("gradients are computed where they are joined") {
  const std::string expected = text(
      "  %j = attention_backward_joined %q, %k, %v, %o, %l, %g ATTRS : D[2,5,3,3,4]\n"
      "  %s = view %j {size=[2,5,36]} : D[2,5,36]\n  return %s\n");
  CHECK(simplified(text(kGradients + "  %s = cat %a, %b, %c {dim=2} : D[2,5,36]\n  return %s\n")).print() ==
        ir_test::parse(expected).print());
  // As slices of a projection take them back.
  const auto put = [](const std::string& name, const std::string& of, int start) {
    return "  %" + name + " = slice_backward %" + of + " {dim=2, start=" + std::to_string(start) +
           ", length=12, step=1, input_size=[2,5,36]} : D[2,5,36]\n";
  };
  const std::string slices =
      text(kGradients + put("x", "c", 24) + put("y", "b", 12) + "  %z = accumulate %x, %y : D[2,5,36]\n" +
           put("w", "a", 0) + "  %s = accumulate %z, %w : D[2,5,36]\n  return %s\n");
  const std::string added = text(
      "  %j = attention_backward_joined %q, %k, %v, %o, %l, %g ATTRS : D[2,5,3,3,4]\n"
      "  %s = view %j {size=[2,5,36]} : D[2,5,36]\n  %t = add %s, 0.0 : D[2,5,36]\n  return %t\n");
  CHECK(simplified(slices).print() == ir_test::parse(added).print());
}

// The same for b matrices, h heads, l rows, width e.
std::string resized(std::string text, int64_t b, int64_t h, int64_t l, int64_t e) {
  const auto put = [&](const char* from, const rg::Shape& to) {
    text = std::regex_replace(text, std::regex("\\[" + std::string(from) + "\\]"), rg::to_string(to));
  };
  put("2,3,5,4", {b, h, l, e});
  put("2,5,3,4", {b, l, h, e});
  put("2,3,5", {b, h, l});
  put("2,5,12", {b, l, h * e});
  put("2,5,36", {b, l, 3 * h * e});
  return text;
}

void check_bits(const char* dtype_name, rg::ScalarType dtype, const char* causal, int64_t b, int64_t h,
                int64_t l, int64_t e) {
  const std::string before = resized(
      text(kGradients + "  %s = cat %a, %b, %c {dim=2} : D[2,5,36]\n  return %s\n", dtype_name, causal), b, h,
      l, e);
  INFO(before);
  const auto random = [&](const rg::Shape& shape) { return rg::to(rg::randn(shape), dtype); };
  rg::Tensors inputs;
  for (int i = 0; i < 3; ++i) inputs.push_back(random({b, h, l, e}));
  inputs.push_back(random({b, l, h, e}));
  inputs.push_back(rg::to(rg::randn({b, h, l}), dtype == rg::kFloat64 ? rg::kFloat64 : rg::kFloat32));
  inputs.push_back(random({b, l, h, e}));
  const rg::ir::Graph after = simplified(before);
  REQUIRE(after.print().find("attention_backward_joined") != std::string::npos);
  CHECK(same_bits(run(ir_test::parse(before), inputs)[0], run(after, inputs)[0]));
}

// The second are so few that the strips of one are shared out, in more than one block of queries.
TEST_CASE("bits of joined gradients are those of each") {
  for (const char* causal : {"true", "false"}) {
    check_bits("f32", rg::kFloat32, causal, 2, 3, 5, 4);
    check_bits("f32", rg::kFloat32, causal, 1, 2, 600, 16);
    check_bits("f64", rg::kFloat64, causal, 2, 3, 70, 8);
    check_bits("bf16", rg::kBFloat16, causal, 2, 3, 5, 4);
    check_bits("f16", rg::kFloat16, causal, 1, 2, 70, 8);
    check_bits("f32", rg::kFloat32, causal, 2, 3, 0, 4);
    check_bits("f32", rg::kFloat32, causal, 0, 3, 5, 4);
  }
}

TEST_CASE("gradients that are used elsewhere, in another order or along another dim are joined by a copy") {
  const auto is_joined = [](const std::string& end) {
    return simplified(text(kGradients + end)).print().find("joined") != std::string::npos;
  };
  CHECK(is_joined("  %s = cat %a, %b, %c {dim=2} : D[2,5,36]\n  return %s\n"));
  CHECK_FALSE(is_joined("  %s = cat %b, %a, %c {dim=2} : D[2,5,36]\n  return %s\n"));
  CHECK_FALSE(is_joined("  %s = cat %a, %b, %c {dim=1} : D[2,15,12]\n  return %s\n"));
  CHECK_FALSE(is_joined("  %s = cat %a, %b {dim=2} : D[2,5,24]\n  return %s\n"));
  CHECK_FALSE(
      is_joined("  %s = cat %a, %b, %c {dim=2} : D[2,5,36]\n  %t = neg %b : D[2,5,12]\n  return %s, %t\n"));
  CHECK_FALSE(
      is_joined("  %s = cat %a, %b, %c {dim=2} : D[2,5,36]\n  %t = neg %dk : D[2,5,3,4]\n  return %s, %t\n"));
  // Again under another view, which a rule removes.
  CHECK_FALSE(
      is_joined("  %k0 = view %dk {size=[2,5,3,4]} : D[2,5,3,4]\n  %t = neg %k0 : D[2,5,3,4]\n"
                "  %d = view %k0 {size=[2,5,12]} : D[2,5,12]\n  %s = cat %a, %d, %c {dim=2} : D[2,5,36]\n  "
                "return %s, %t\n"));
  CHECK_FALSE(is_joined("  %s = cat %a, %b, %c {dim=2} : D[2,5,36]\n  return %s, %dk\n"));
}
