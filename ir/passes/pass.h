// Pass: a function that improves a graph and does not change what it computes, bit for bit. RG_PASSES is the one list
// in which a pass is entered. An entry X(NAME, stage, doc) stands for
//
//   bool NAME(Graph& graph, const PassInput& input, Remap& remap)    in NAME.cc (tables of rules alone: pipeline.cc)
//   a row of kPasses                                                 by which ir/passes/pipeline.h runs it
//
// Passes run in the order of the list, and the stages are in that order, too.
#pragma once

#include <limits>

#include "engine/executor.h"
#include "ir/passes/gated_derivatives.h"
#include "ir/passes/rewrite.h"

namespace retrograd::inline v0::ir {

struct Lifetimes;

/// The input of passes besides the graph.
struct PassInput {
  std::span<const Rewrite> simplify = {}, broadcast = {};  // the rules of these passes
  std::span<const GatedOps> gated = {};                    // of `gated_derivatives`
  std::span<const Number> values = {};        // of all symbols, for sizes in bytes; default: those at capture
  std::span<const OutsideWrite> writes = {};  // what is computed in place stays so
  std::span<const int32_t> given = {};        // inputs, by number, whose memory is freed after their last use
  Executor* executor = nullptr;               // decides what may be fused and joined; null: nothing
  int64_t most_bytes =
      std::numeric_limits<int64_t>::max();  // the peak that a pass may raise that of its graph to
};

/// Of a graph in its order, each node by itself.
Lifetimes lifetimes_of(const Graph& graph, const PassInput& input);
int64_t peak_of(const Graph& graph, const PassInput& input);

struct Pass {
  /// rules     applies rules, which can raise the peak: then it is undone
  /// cleaning  removes what rules leave behind; runs again when some were undone
  /// placing   groups nodes and decides where they run; once, at the end
  enum class Stage : uint8_t { rules, cleaning, placing };

  std::string_view name, doc;
  /// Whether the graph was changed; then `remap` has the new positions of nodes and values. After an exception the
  /// graph is unchanged.
  bool (*run)(Graph& graph, const PassInput& input, Remap& remap);
  Stage stage;
};

#define RG_PASSES(X)                                                                          \
  X(simplify, rules, "rules that replace a node by a simpler one")                            \
  X(broadcast, rules, "elementwise nodes run before their operands are expanded")             \
  X(cse, cleaning, "equal nodes become one")                                                  \
  X(dce, cleaning, "pure nodes without use are dropped")                                      \
  X(recompute, placing, "values held over the peak are computed again behind it")             \
  X(gated_derivatives, placing, "derivatives of gated activations are computed next to them") \
  X(join_updates, placing, "steps of an optimizer run as one launch")                         \
  X(schedule, placing, "pure nodes move to where less memory is held")                        \
  X(early_updates, placing, "an optimizer's updates run directly after their gradients")      \
  X(fuse, placing, "nodes that run as one step are adjacent")

#define RG_DECLARE(name, stage, doc) bool name(Graph& graph, const PassInput& input, Remap& remap);
RG_PASSES(RG_DECLARE)
#undef RG_DECLARE

inline constexpr Pass kPasses[] = {
#define RG_ROW(name, stage, doc) {#name, doc, name, Pass::Stage::stage},
    RG_PASSES(RG_ROW)
#undef RG_ROW
};

inline constexpr size_t kPassCount = std::size(kPasses);

/// The row of a pass, which must exist.
constexpr size_t pass_number(std::string_view name) {
  size_t number = 0;
  while (kPasses[number].name != name) ++number;
  return number;
}

}  // namespace retrograd::ir
