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
//
// What is promised of budgets is checked: a step adds what was planned, which is at most the budget, and for a smaller
// budget no more is planned.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "retrograd/retrograd.h"

namespace bench {

struct Budgets {
  std::vector<double> parts;  // of the eager peak
  int count = 0;              // without parts: as many, evenly from the eager peak to the least plan
};

/// `mode`: step or compile. `loss`: of one batch. Each step also runs its backward. Gradients of `parameters` are there
/// before a step; with compile they are made by each backward and count, since one that adds to gradients needs less
/// than is planned. False if a promise is broken; a line on standard error says which.
bool measure_budgets(const std::string& model, const std::string& mode, const retrograd::Tensors& parameters,
                     const std::function<retrograd::Tensor()>& loss, const Budgets& budgets, int steps);

}  // namespace bench
