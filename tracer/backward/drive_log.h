// DriveLog: the actions of the driver while a backward was recorded, with their positions among the nodes. A run that
// leaves the graph reconstructs the state of the backward from it (tracer/backward/departure.h). It is kept only for
// graphs that call user code.
#pragma once

#include <vector>

#include "tracer/plan/plan.h"

namespace retrograd::inline v0 {

struct DriveLog {
  enum class Kind : uint8_t {
    record,  // index: place; value: its first gradient's number, count: how many
    // Index: place; the rule is done. If user code ran: value, count: the gradients and the results, in `lists`.
    gave,
    leaf,     // index: of the leaf; value: its gradient's number
    arrived,  // index: the gradient's number; value
    captured  // index: of the input; value
  };
  struct Event {
    Kind kind;
    uint32_t count;
    uint32_t node;  // the number of the next node
    uint32_t index;
    int32_t value;
  };
  /// The values among the events.
  std::vector<ir::ValueId> values() const;
  /// The values that a stopped run must have. A gradient that has arrived is kept until its record or leaf begins,
  /// used or not, as the driver would hold it until then. Operands and results of a rule that calls user code are
  /// kept until its post-hooks.
  std::vector<KeptValue> kept() const;
  std::vector<Event> events;
  std::vector<int32_t> lists;  // value ids
  bool may_leave = false;      // the graph calls user code: only then the log is kept
};

}  // namespace retrograd
