// The pipeline: all passes over a graph, in the order of their list (ir/passes/pass.h). An optimised graph computes the
// same as the recorded one, bit for bit, whichever passes are switched off.
//
//   ir::PassOptions options{.input = rewrites::all()};
//   options.off = ir::passes_named(secure_getenv(ir::kPassesOffVariable));
//   const ir::PassReport report = ir::run_passes(graph, options);
//   table.end_node = report.remap.places[table.end_node];
//
// Its peak (ir/passes/lifetimes.h) does not rise either, whichever passes are switched off: only passes that apply
// rules can raise it, and then they are undone, the last one first.
//
// Values that no node needs, but a table outside of the graph, are made outputs while the passes run: an output is
// kept, and shares no memory with another. Limits: for graphs that run on an executor. Derivatives of a graph (replay
// into a Taper) may differ in rounding after passes, since gradients are then added in another order.
#pragma once

#include <bitset>
#include <functional>

#include "ir/passes/pass.h"

namespace retrograd::inline v0::ir {

using PassSet = std::bitset<kPassCount>;

/// The environment variable that names passes to switch off. The tracer reads it whenever it runs passes; nothing in
/// this folder does.
inline constexpr const char* kPassesOffVariable = "RETROGRAD_PASSES_OFF";
/// "cse,dce" as a set; empty for null and "". "all" names all of them. Error(bad_argument) for an unknown name.
PassSet passes_named(const char* names);

struct PassOptions {
  PassInput input = {};
  PassSet off = {};
  bool verify = false;  // after each pass that changed the graph (ir/verify.h): InternalError names the pass
  /// Called after each pass that changed the graph, with its text before and after.
  std::function<void(const Pass& pass, const std::string& before, const std::string& after)> dump = {};
};

struct PassReport {
  struct Run {
    bool changed = false;
    int64_t nanoseconds = 0;  // of the pass alone
    size_t nodes = 0;         // after it
  };
  Run runs[kPassCount];  // in order of kPasses; no time for those switched off
  Remap remap;           // from the original graph to the final one

  /// A line for each pass: name, microseconds, nodes.
  std::string text() const;
};

/// Runs all passes that are not switched off.
PassReport run_passes(Graph& graph, const PassOptions& options = {});

}  // namespace retrograd::ir
