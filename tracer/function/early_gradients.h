// EarlyGradients: gradients of leaves that the run of a recorded function's backward hands over when it has computed
// them.
//
// A recorded function is one record of the tape, whose gradients come together at its end. Where hooks consume them (an
// optimizer that updates a parameter in a post-accumulate hook and drops .grad), all of them would be held at once. So
// in an eager backward a leaf with such hooks gets its gradient after the last node that uses the gradient or the
// leaf's memory. Such leaves get theirs in the order in which gradients are computed.
// A hook that writes to memory which the rest of the run reads is an error, as it is where that memory was saved on a
// tape.
// Not in a profiled or measured run, where all come at the end, nor in graphs of launches.
#pragma once

#include "engine/driver.h"
#include "tracer/function/backwards.h"
#include "tracer/plan/run.h"

namespace retrograd::inline v0 {

class EarlyGradients {
 public:
  /// Of a run of the backward with these bindings, for the record that runs.
  EarlyGradients(const FunctionBackward& backward, const Record& record,
                 std::span<const ir::Binding> bindings);

  /// Runs the plan up to the last of these gradients. Error(version_mismatch) if a hook has written to what the rest
  /// reads.
  void run(PlanRun& run) const;

 private:
  struct Delivery {
    uint32_t node;  // before which it is due
    LeafDelivery::Place place;
  };
  struct Input {
    const Storage* memory;
    uint32_t version, until;  // until: the node after the last one that reads it
  };
  void check_inputs(uint32_t node) const;

  const Record& record_;
  LeafDelivery* delivery_ = nullptr;
  std::vector<Delivery> deliveries_;  // in order of nodes
  std::vector<Input> inputs_;
};

}  // namespace retrograd
