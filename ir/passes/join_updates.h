// Joined updates: steps of an optimizer that one launch computes, for executors that request it
// (Executor::joins_updates).
//
// In a recorded step the update of each parameter is a node (Trait::updates: ops/optimizer_steps.h). The CPU runs them
// one by one, each directly after its gradient: so the gradient is freed immediately, and the peak is low. On a device
// many small launches cost more than that gains. There the pass `join_updates` makes groups of them (Node::group), as
// eager steps do with the same kernels: a list of operands, a list of results, one set of numbers.
//
//   - A group holds neighbours: updates without another node in between, none of which uses a result of another. So
//   nothing is held longer than in the recorded order, where the updates of an optimizer follow all gradients.
//   - A group has one op, dtype and device, one set of present operands and attributes, and equal numbers at capture.
//   Updates of other kinds in between do not separate them.
//   - Numbers belong to each node and may differ in a later run, for example after a state_dict with other step counts.
//   The kernel of a group checks them and launches consecutive updates together whose numbers have always been equal.
//   Updates that were separated once stay separate, so that a recorded launch need not be recorded again in each step.
//   So a group is a hint for the plan, and no guarantee.
//
// `schedule` moves a group as a whole, and `fuse` keeps it unchanged.
#pragma once

#include <memory>

#include "engine/executor.h"

namespace retrograd::inline v0::ir {

/// The kernel of a group that the pass has made; `executor` runs its launches and must outlive it.
std::unique_ptr<FusedKernel> joined_updates(Executor& executor, const FusedGroup& group);

}  // namespace retrograd::ir
