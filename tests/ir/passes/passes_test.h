// Shared by the tests of passes: applies a pass from text to text.
#pragma once

#include <algorithm>

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
inline std::string after(std::string_view pass, const std::string& text,
                         const ir::PassInput& input = rg::rewrites::all()) {
  ir::Graph graph = ir_test::parse(text);
  const std::string before = graph.print();
  const ir::PassReport report = ir::run_passes(graph, {.input = input, .off = all_but(pass), .verify = true});
  for (const ir::PassReport::Run& run : report.runs)
    if (run.changed) return graph.print();
  return graph.print() == before ? "unchanged" : "changed, and the pass says it is not:\n" + graph.print();
}

/// A line of a graph: value `result` is that of parameter `param` after a step of SGD with gradient `grad`.
inline std::string sgd(int result, int param, int grad, const std::string& size,
                       const std::string& lr = "0.1", const std::string& dtype = "f32") {
  const std::string type = dtype + "[" + size + "]";
  return "  %" + std::to_string(result) + " = sgd_step %" + std::to_string(param) + ", none, none, %" +
         std::to_string(grad) + ", none {lr=" + lr +
         ", momentum=0.0, dampening=0.0, weight_decay=0.0, step=1.0, buffered=0.0, nesterov=false, "
         "maximize=false} : " +
         type + "\n";
}

inline bool has_updates(const ir::Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const ir::Node& n) { return n.op->is(rg::Trait::updates); });
}

}  // namespace passes_test
