// Joined updates: the steps of an optimizer that one launch computes, for executors that want that (Executor::joins_updates).
//
// In a recorded step the update of each parameter is a node (Trait::updates: AdamWStep, SGDStep). The CPU runs them one by one, each where its
// gradient is: so the gradient dies at once, and the peak is low. On a device many small launches cost more than that is worth. There the pass
// `join_updates` makes groups of them (Node::group), as eager steps do with the same kernels: a list of operands, a list of results, one set of
// numbers.
//
//   - A group holds neighbours: updates between which no other node stands, of which none uses what another gives. So nothing is held longer
//     than in the order in which the function was recorded, where an optimizer's updates stand behind all gradients.
//   - Of these, those of one op, dtype, device and one set of operands and attributes that are there, and whose numbers are the same
//     at capture. Other kinds between them do not part them.
//   - Numbers belong to each node and may differ in a later run, after a state_dict with other counts of steps say: the kernel of a group looks
//     at them and launches those together that follow each other and have had the same ones so far: what has parted once stays apart, so that a
//     recorded launch need not be recorded anew in each step. So a group is a note for the plan, and no promise.
//
// `schedule` moves a group as a whole, and `fuse` leaves it as it is.
#pragma once

#include <memory>

#include "engine/executor.h"

namespace retrograd::ir {

/// The kernel of a group that the pass has made; `executor` runs its launches and must outlive it.
std::unique_ptr<FusedKernel> joined_updates(Executor& executor, const FusedGroup& group);

}  // namespace retrograd::ir
