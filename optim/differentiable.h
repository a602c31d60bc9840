// The steps of elementwise rules as tensor functions, which are differentiated like any others: of the same formulas that
// kernels are made of.
#pragma once

#include "optim/rule_info.h"

namespace retrograd::inline v0::optim::detail {

/// The new values of a parameter and its states; undefined for absent states. `operands` as the rule lists them, the
/// gradient last.
using DifferentiableStep = std::vector<Tensor> (*)(const StepInputs& inputs,
                                                   std::span<const Tensor> operands);

/// Null if the op is no step of an elementwise rule.
DifferentiableStep differentiable_step(const OpInfo* op);

}  // namespace retrograd::optim::detail
