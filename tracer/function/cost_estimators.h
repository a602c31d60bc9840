// Estimators of the cost of operations, by name, for the plans of a memory budget. A cost decides between plans that
// are within a budget, never whether one is. Costs are compared with each other only: their unit is free.
//
//   roofline  the time of its memory traffic or of its multiplications, whichever is longer, and a small amount for
//             being started, at kFlopsPerByte: deterministic
//   measured  the same at the ratio that this machine has (tracer/observe/machine_rates.h). So plans may differ between
//             machines, and between processes of one
//   flops     its multiplications and additions; 1 of an op that has none
//
// Invariant: what a NodeCost gives is finite and not negative, and sums of it over a plan are finite. An estimator of
// the user is checked; views cost nothing, and no estimator is asked for them.
#pragma once

#include "ir/passes/budget_tasks.h"
#include "tracer/function/memory_budget.h"

namespace retrograd::inline v0 {

struct NamedEstimator {
  std::string_view name;
  /// `flops_per_byte`: multiplications in the time in which a byte is moved.
  double (*cost)(const EstimatedOp& op, double flops_per_byte);
  bool is_measured = false;
};

double roofline_cost(const EstimatedOp& op, double flops_per_byte);
double flops_cost(const EstimatedOp& op, double flops_per_byte);

inline constexpr NamedEstimator kEstimators[] = {
    {"roofline", roofline_cost}, {"measured", roofline_cost, true}, {"flops", flops_cost}};

/// Null if there is none of this name.
const NamedEstimator* find_estimator(std::string_view name);

/// The costs of nodes that run on this device. The function throws Error(bad_argument) where an estimator of the user
/// gives no cost; it must not outlive the budget.
ir::NodeCost node_cost(const MemoryBudget& budget, Device device);

}  // namespace retrograd
