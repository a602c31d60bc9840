// late_reads: what is computed on the CPU for outputs alone comes behind everything else, and with it the reading of values from a device.
//
// A device goes on by itself, but not beyond what it was told: where the host waits for a value in the middle of a graph, what stands behind it is
// launched too late. So pure nodes on the CPU that only outputs and such nodes need are put at the end, in their old order. What they read must
// be private memory (ir/passes/memory_classes.h), and no more than kLateBytes, which are held until then.
#pragma once

#include "ir/graph.h"

namespace retrograd::ir {

inline constexpr int64_t kLateBytes = int64_t{1} << 20;

/// Whether something was moved. A graph that is on the CPU as a whole stays as it is. Sizes are no symbols.
bool late_reads(Graph& graph);

}  // namespace retrograd::ir
