// See tests/ir/round_trip.h.
#include "tests/ir/round_trip.h"

#include <fmt/format.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "ops/all_ops.h"

namespace ir_test {

namespace rg = retrograd;

std::string fault_of_text(std::string_view text) {
  try {
    const rg::ir::Graph parsed = rg::ir::parse(text, rg::ops::find_op);
    rg::ir::verify(parsed);
    const std::string again = parsed.print();
    return again == text ? "" : fmt::format("the text changed:\n{}to\n{}", text, again);
  } catch (const rg::Exception& e) {
    return fmt::format("{}\n{}", e.what(), text);
  }
}

std::string fault_of(const rg::ir::Graph& graph) {
  const std::string text = graph.print();
  try {
    rg::ir::verify(graph);
  } catch (const rg::Exception& e) {
    return fmt::format("{}\n{}", e.what(), text);
  }
  return fault_of_text(text);
}

}  // namespace ir_test
