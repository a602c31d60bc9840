// Training steps with memory budgets, as a compiled step or as a compiled loss and its backward: a JSON line for each.
//
//   budget             the part of the eager peak that was asked for; of the least plan, what it is of it
//   budget_bytes       the same in bytes
//   planned_peak       what a run adds to what is live before, as planned; measured_peak: as measured
//   rss_peak_mb        what a run adds to the memory of the process, once what is kept for reuse has been given back
//   step_ms            median step
//   recomputed_share   of the estimated time of the step's operations
//   lower_bound_bytes  no plan can add less
//   plan_ms            the time of planning
//   least              whether no plan is within the budget; then the figures are those of the least one
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "retrograd/retrograd.h"

namespace bench {

/// `mode`: step or compile. `loss`: of one batch. Each step also runs its backward; gradients of `parameters` are there
/// before.
void measure_budgets(const std::string& model, const std::string& mode, const retrograd::Tensors& parameters,
                     const std::function<retrograd::Tensor()>& loss, const std::vector<double>& budgets,
                     int steps);

}  // namespace bench
