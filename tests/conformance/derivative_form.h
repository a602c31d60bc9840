// The derivative form (suites/FORMAT.md, section 4): the program as a function of its inputs, and its value, gradients,
// second order and forward-mode derivative. Each of these evaluates the program again, on new inputs.
#pragma once

#include "tests/conformance/compare.h"
#include "tests/conformance/differentiator.h"

namespace retrograd::conformance {

/// Evaluates and compares all that the case expects in this mode, outputs and derivatives.
void run_derivative_form(const Json& test_case, Mode mode, Comparison& comparison,
                         Differentiator& differentiator);

}  // namespace retrograd::conformance
