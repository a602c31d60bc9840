// Steps of optimizers over contiguous elements: one table of functions per instruction-set level. Implemented
// by optimizer_rows.cc, of the formulas in ops/optimizers/.
//
// x and y are the operands and results of the op for one parameter; an optional operand may be null, and then so is
// its result. Each output may be the input of the same number. Each element is independent of the others: results do
// not depend on how the work is cut.
#pragma once

#include <cstdint>

#include "cpu/levels.h"
#include "ops/optimizers/rules.h"

namespace retrograd::inline v0::cpu {

/// The step of one formula, for the elements [begin, end).
template <class T, class Factors>
struct OptimizerStep {
  void (*run)(const Factors& factors, const T* const* x, T* const* y, int64_t begin, int64_t end);
};

template <class T, class Formulas>
struct OptimizerSteps;
template <class T, class... Formula>
struct OptimizerSteps<T, ops::RuleList<Formula...>> : OptimizerStep<T, typename Formula::Factors>... {};

/// The steps of all formulas: each is the base class of its factors.
template <class T>
using OptimizerTable = OptimizerSteps<T, ops::OptimizerFormulas>;

RG_EACH_LEVEL(template <class T> const OptimizerTable<T>& optimizer_table();)
/// The table of the best level, for T float and double.
template <class T>
const OptimizerTable<T>& optimizer_table() {
  RG_RETURN_BEST_LEVEL(optimizer_table<T>());
}

}  // namespace retrograd::cpu
