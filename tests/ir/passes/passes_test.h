// What the tests of passes share: a pass from text to text.
#pragma once

#include "ir/passes/pipeline.h"
#include "rewrites/rewrites.h"
#include "tests/ir/ir_test.h"

namespace passes_test {

namespace rg = retrograd;
namespace ir = rg::ir;

/// All passes but this one.
inline ir::PassSet all_but(std::string_view name) {
  return ir::passes_named("all") & ~ir::passes_named(std::string(name).c_str());
}

/// The text of the graph after one pass; "unchanged" if the pass says so, and then it is.
inline std::string after(std::string_view pass, const std::string& text) {
  ir::Graph graph = ir_test::parse(text);
  const std::string before = graph.print();
  const ir::PassReport report =
      ir::run_passes(graph, {.input = rg::rewrites::all(), .off = all_but(pass), .verify = true});
  for (const ir::PassReport::Run& run : report.runs)
    if (run.changed) return graph.print();
  return graph.print() == before ? "unchanged" : "changed, and the pass says it is not:\n" + graph.print();
}

}  // namespace passes_test
