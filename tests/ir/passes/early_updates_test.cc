// early_updates, text to text: the new positions of an optimizer's updates. any_combination_test.cc tests that the bits
// of recorded steps do not change, peak_test.cc that their peaks do not.
#include <catch2/catch.hpp>

#include "tests/ir/passes/passes_test.h"

namespace rg = retrograd;
namespace ir = rg::ir;

namespace {

// Output k is written to the input that is given as number k.
std::string early(const std::string& text, const std::vector<int32_t>& written) {
  std::vector<ir::OutsideWrite> writes;
  for (size_t k = 0; k < written.size(); ++k) writes.push_back({written[k], static_cast<int32_t>(k)});
  ir::PassInput input = rg::rewrites::all();
  input.writes = writes;
  return passes_test::after("early_updates", text, input);
}

std::string step(int result, int param, int grad) { return passes_test::sgd(result, param, grad, "100"); }

const std::string kTwo = "graph @g(%0: f32[100], %1: f32[100], %2: f32[100]) {\n";

}  // namespace

TEST_CASE("updates come after their gradients") {
  const std::string first = "  %3 = exp %2 : f32[100]\n", end = "  return %5, %6\n}\n";
  CHECK(early(kTwo + first + "  %4 = neg %2 : f32[100]\n" + step(5, 0, 3) + step(6, 1, 4) + end, {0, 1}) ==
        kTwo + first + step(4, 0, 3) + "  %5 = neg %2 : f32[100]\n" + step(6, 1, 5) + "  return %4, %6\n}\n");
  CHECK(early(kTwo + first + step(4, 0, 3) + "  %5 = neg %2 : f32[100]\n" + step(6, 1, 5) +
                  "  return %4, %6\n}\n",
              {0, 1}) == "unchanged");
}

TEST_CASE("an update that needs another one's result comes after it") {
  const std::string first = "  %3 = exp %2 : f32[100]\n";
  CHECK(early(kTwo + first + "  %4 = neg %2 : f32[100]\n" + step(5, 0, 3) + step(6, 5, 3) +
                  "  return %6, %4\n}\n",
              {0}) ==
        kTwo + first + step(4, 0, 3) + step(5, 4, 3) + "  %6 = neg %2 : f32[100]\n  return %5, %6\n}\n");
}

TEST_CASE("an update comes after all nodes that read what it writes to") {
  // %4 is a gradient as well, computed from the parameter %0.
  CHECK(early(kTwo + "  %3 = exp %2 : f32[100]\n  %4 = mul %0, %2 : f32[100]\n  %5 = neg %2 : f32[100]\n" +
                  step(6, 0, 3) + step(7, 1, 4) + "  return %6, %7, %5\n}\n",
              {0, 1}) == kTwo + "  %3 = exp %2 : f32[100]\n  %4 = mul %0, %2 : f32[100]\n" + step(5, 0, 3) +
                             step(6, 1, 4) + "  %7 = neg %2 : f32[100]\n  return %5, %6, %7\n}\n");
}

TEST_CASE("no update passes an effect, also where it reads private memory alone") {
  CHECK(early(R"(graph @g(%0: f32[100], %1: f32[100], $2: hook) {
  %2 = mul %0, %0 : f32[100]
  %3 = exp %1 : f32[100]
  hook $2
)" + step(4, 2, 3) +
                  "  return %4\n}\n",
              {0}) == "unchanged");
}

TEST_CASE("where a step fails or a hook runs, what it had not come to is as it was") {
  CHECK(early(R"(graph @g(%0: f32[100], %1: f32[100], $2: hook) {
  %2 = exp %1 : f32[100]
  hook $2
)" + step(3, 0, 2) +
                  "  return %3\n}\n",
              {0}) == "unchanged");
  CHECK(early(R"(graph @g(%0: f32[100], %1: f32[100], %2: i64[3], %3: f32[5,4]) {
  %4 = exp %1 : f32[100]
  %5 = embedding %2, %3 {padding_idx=-1, scale_grad_by_freq=false, without_padding=false} : f32[3,4]
)" + step(6, 0, 4) +
                  "  return %6, %5\n}\n",
              {0}) == "unchanged");
}

TEST_CASE("joined updates stay, and no update comes between them") {
  // The gradient %4 of the third is what the group gives.
  const auto grouped = [](const std::string& line) { return "  " + line; };
  const std::string group = "  group {\n" + grouped(step(4, 0, 3)) + grouped(step(5, 1, 3)) + "  }\n";
  const std::string head = "graph @g(%0: f32[100], %1: f32[100], %2: f32[100]) {\n  %3 = exp %2 : f32[100]\n";
  CHECK(early(head + group + "  %6 = neg %2 : f32[100]\n" + step(7, 2, 4) + "  return %4, %5, %7, %6\n}\n",
              {0, 1}) ==
        head + group + step(6, 2, 4) + "  %7 = neg %2 : f32[100]\n  return %4, %5, %6, %7\n}\n");
}

TEST_CASE("an order that would hold more at the peak is not taken") {
  // The new value has memory of its own here; %4 is large, and %3 is needed after it.
  CHECK(early("graph @g(%0: f32[100], %1: f32[100]) {\n  %2 = exp %1 : f32[100]\n"
              "  %3 = cat %2, %2, %2, %2 {dim=0} : f32[400]\n  %4 = sum %3 {dim=[0], keepdim=false} : f32[]\n"
              "  %5 = mul %2, %4 : f32[100]\n" +
                  step(6, 0, 2) + "  %7 = add %5, %6 : f32[100]\n  return %7\n}\n",
              {}) == "unchanged");
}
