// Every op's derivatives: each row of the table is checked (table.h describes how), and every op with a derivative has
// a row. The temporary memory of everything that runs is checked, too. Values at the edges of an op's domain are in
// tests/ops/edges; values against PyTorch are in tests/conformance.
#include <catch2/catch.hpp>

#include "cpu/scratch_check.h"
#include "ops/all_ops.h"
#include "tests/ops/derivatives/families.h"

namespace derivatives {
namespace {

/// The ops that the rows of a family differentiate; its rows are checked at the first call.
const std::set<std::string_view>& covered_by(size_t family) {
  static std::array<std::set<std::string_view>, kFamilies.size()> covered;
  static std::array<bool, kFamilies.size()> checked{};
  if (!std::exchange(checked[family], true)) {
    const retrograd::cpu::CheckScratch every_launch;
    for (const Row& row : kFamilies[family].rows()) check_row(row, covered[family]);
  }
  return covered[family];
}

TEST_CASE("derivatives are right") {
  for (size_t i = 0; i < kFamilies.size(); ++i) SECTION(std::string(kFamilies[i].name)) {
      CHECK_FALSE(covered_by(i).empty());
    }
}

TEST_CASE("every op with a derivative has a row") {
  std::set<std::string_view> covered;
  for (size_t i = 0; i < kFamilies.size(); ++i) covered.insert(covered_by(i).begin(), covered_by(i).end());
  for (const retrograd::OpInfo* op : retrograd::ops::all_ops()) {
    if (!op->vjp) continue;
    INFO("no row of tests/ops/derivatives differentiates " << op->name);
    CHECK(covered.contains(op->name));
    INFO("it has no jvp");
    CHECK(op->jvp);
  }
}

}  // namespace
}  // namespace derivatives
