// Pass: a function that makes a graph better and leaves what it computes as it is, bit for bit. The
// passes, in the order in which they run, are the list in ir/passes/pipeline.h; each has a file of its
// own.
#pragma once

#include "engine/executor.h"
#include "ir/passes/rewrite.h"
#include "ir/passes/slopes.h"

namespace retrograd::ir {

/// What passes are given besides the graph.
struct PassInput {
  std::span<const Rewrite> simplify = {}, broadcast = {};  // the rules of these passes
  std::span<const GatedOps> gated = {};                    // of `slopes`
  std::span<const Number> values = {};  // of all symbols, for sizes in bytes; without them those at capture
  std::span<const OutsideWrite> writes = {};  // what is computed in place stays so
  std::span<const int32_t> given = {};        // inputs whose memory goes with their last use, by number
  Executor* executor = nullptr;               // says what may be fused and joined; without it nothing
};

struct Pass {
  std::string_view name, doc;
  /// Whether the graph was changed; then `remap` says what became of nodes and values. An exception
  /// leaves the graph as it was.
  bool (*run)(Graph& graph, const PassInput& input, Remap& remap);
};

bool simplify(Graph& graph, const PassInput& input, Remap& remap);
bool broadcast(Graph& graph, const PassInput& input, Remap& remap);
bool slopes(Graph& graph, const PassInput& input, Remap& remap);
bool cse(Graph& graph, const PassInput& input, Remap& remap);
bool dce(Graph& graph, const PassInput& input, Remap& remap);
bool join_updates(Graph& graph, const PassInput& input, Remap& remap);
bool schedule(Graph& graph, const PassInput& input, Remap& remap);
bool early_updates(Graph& graph, const PassInput& input, Remap& remap);
bool fuse(Graph& graph, const PassInput& input, Remap& remap);

}  // namespace retrograd::ir
