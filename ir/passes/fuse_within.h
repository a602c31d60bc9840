// Groups that do not raise the peak. A group runs at the position of its last node (ir/passes/fuse.h): inputs of its
// first nodes are held up to there, and all its outputs are made at the same time. Where that takes more memory than
// the peak of the nodes one by one, groups are cut.
//
// Cutting: groups are found. Where more is live (ir/passes/lifetimes.h) than without groups, the step that runs there
// is separated: all groups are emitted before its first node and after its last one. If the excess remains in the next
// round, the step is cut before its first reduction, or in its middle. A round costs as much as finding groups and
// lifetimes, and the number of rounds is about the logarithm of a group's size. Single nodes run in the old order, with
// the old live memory; so the final peak is never above the initial one.
#pragma once

#include "ir/passes/lifetimes.h"

namespace retrograd::inline v0::ir {

/// find_groups() with a peak not above that of the graph's nodes one by one. `memory`: without order and groups.
Grouping find_groups_within_peak(const Graph& graph, const FuseOptions& options, LifetimeOptions memory);

}  // namespace retrograd::ir
