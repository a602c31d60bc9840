// Departure: leaving a captured graph for the driver. It observes the run of a plan: user code that ran may have
// changed the rest of the backward.
//
//   annotations_changed()  finds the first record or leaf still to come that is affected by a change: the run stops
//                          there
//   gradient_missing()     backward of a user function left a gradient undefined: the run stops after that function
//   resume()               turns registers back into the driver's state at that point (BackwardState); the driver
//                          continues eagerly
// The log of the driver kept at capture (DriveLog) tells where each gradient is at each point.
#pragma once

#include "tracer/backward/drive_log.h"
#include "tracer/backward/trail.h"
#include "tracer/plan/run.h"

namespace retrograd::inline v0 {

class Departure final : public RunObserver {
 public:
  Departure(const DriveLog& log, const BackwardRequest& request, const Reached& reached, const Trail& trail)
      : log_(log), request_(request), reached_(reached), trail_(trail) {}

  uint32_t annotations_changed(const PlanRun& run) override;
  void gradient_missing(uint32_t node, Tensors given) override;
  /// Continues eagerly from where the run has stopped, to the end.
  Tensors resume(PlanRun& run);

 private:
  static constexpr size_t kStay = ~size_t{0};
  std::vector<ir::ValueId> arrived_values(const PlanRun& run, size_t count, BackwardState& state) const;
  void set_place(const Walk& walk, BackwardState& state) const;
  void set_given(const PlanRun& run, const Walk::Item& item, BackwardState& state);

  const DriveLog& log_;
  const BackwardRequest& request_;
  const Reached& reached_;
  const Trail& trail_;
  size_t leave_at_ = kStay;  // event of the log at which the graph is left
  Tensors given_;            // the results of the function that caused it, if any
};

}  // namespace retrograd
