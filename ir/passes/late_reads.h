// late_reads: moves CPU computations that only outputs need after everything else, and with them the reads of values
// from a device.
//
// A device runs on its own, but only what was launched: when the host waits for a value in the middle of a graph, the
// nodes after it are launched too late. So pure nodes on the CPU that only outputs and such nodes need are put at the
// end, in their old order. Their operands must be private memory (ir/passes/memory_classes.h) of at most kLateBytes,
// which is held until then.
#pragma once

#include "ir/graph.h"

namespace retrograd::inline v0::ir {

inline constexpr int64_t kLateBytes = int64_t{1} << 20;

/// Whether something was moved. A graph that is entirely on the CPU is unchanged. Sizes are no symbols.
bool late_reads(Graph& graph);

}  // namespace retrograd::ir
