// Groups that do not lift the peak. A group runs where the last of its nodes stood (ir/passes/fuse.h): what
// its first ones read is held up to there, and all its outputs come at once. Where that takes more memory than
// the nodes one by one take at their most, groups are cut.
//
// Cutting: groups are found, and where more is live (ir/passes/lifetimes.h) than before there were groups, the
// step that runs there is kept by itself: all groups go before its first node, and behind its last one. If it
// is still there in the next round, it is cut before its first reduction, or in its middle. So a round costs what finding groups and
// lifetimes cost, and there are about as many as the logarithm of a group's size. What is cut down to single
// nodes runs in the old order, with what was live then; so the end is never above the beginning.
#pragma once

#include "ir/passes/lifetimes.h"

namespace retrograd::ir {

/// find_groups() with a peak not above that of the graph's nodes one by one. `memory`: without order and groups.
Grouping find_groups_within_peak(const Graph& graph, const FuseOptions& options, LifetimeOptions memory);

}  // namespace retrograd::ir
