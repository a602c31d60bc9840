// The pipeline: all passes over a graph, in order. What an optimised graph computes is what the recorded
// one does, bit for bit, whichever passes are switched off.
//
//   ir::PassOptions options{.input = rewrites::all()};
//   options.off = ir::passes_named(secure_getenv(ir::kPassesOffVariable));
//   const ir::PassReport report = ir::run_passes(graph, options);
//   table.end_node = report.remap.places[table.end_node];
//
// Nor does its peak rise (ir/passes/lifetimes.h), whichever are switched off: no pass lifts it but those that apply rules,
// and where these have, they are taken back, the last one first.
//
// Values that a table beside the graph needs, but no node, are made outputs while the passes run: an
// output is kept, and shares no memory with another. Limits: for graphs that run on an executor.
// Derivatives of a graph (replay into a Taper) may differ in rounding after passes, since gradients are
// then added in another order.
#pragma once

#include <bitset>
#include <functional>

#include "ir/passes/pass.h"

namespace retrograd::ir {

inline constexpr Pass kPasses[] = {
    {"simplify", "rules that replace a node by a simpler one", simplify},
    {"broadcast", "elementwise nodes come before the repetition of their operands", broadcast},
    {"slopes", "derivatives of gated activations are computed beside them", slopes},
    {"cse", "equal nodes become one", cse},
    {"dce", "pure nodes without use are dropped", dce},
    {"join_updates", "steps of an optimizer run as one launch", join_updates},
    {"schedule", "pure nodes move to where less memory is held", schedule},
    {"early_updates", "an optimizer's updates come right behind their gradients", early_updates},
    {"fuse", "nodes that run as one step stand together", fuse},
};
inline constexpr size_t kPassCount = std::size(kPasses);

/// What is done to a function and its backward before the passes (ir/passes/recompute.h). It is switched off like them.
inline constexpr std::string_view kRecompute = "recompute";

using PassSet = std::bitset<kPassCount + 1>;  // the last: kRecompute

/// The environment variable that names passes to be switched off. The tracer reads it whenever passes are to
/// run; nothing in this folder does.
inline constexpr const char* kPassesOffVariable = "RETROGRAD_PASSES_OFF";
/// "cse,dce" as a set; none for null and "". "all" names all of them. Error(bad_argument) for a name that
/// is none.
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
  Run runs[kPassCount];  // in order of kPasses; of those switched off: no time
  Remap remap;           // from the graph as it was to what it is now

  /// A line for each pass: name, microseconds, nodes.
  std::string text() const;
};

/// Runs all passes that are not switched off.
PassReport run_passes(Graph& graph, const PassOptions& options = {});

}  // namespace retrograd::ir
