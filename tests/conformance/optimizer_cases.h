// Cases of kind "optim" and "train" (suites/FORMAT.md, section 8): steps of an optimizer with given gradients, and
// short trainings.
#pragma once

#include "tests/conformance/compare.h"
#include "tests/conformance/differentiator.h"

namespace retrograd::conformance {

/// Runs the case. Compiled, a step is a plan: gradients in, or the whole of forward, backward, clipping and update.
/// Throws Unsupported for an optimizer that the library lacks.
void run_optimizer_case(const Json& test_case, Mode mode, Comparison& comparison);

/// Throws BadManifest for an expectation of such a case that nothing would be compared with.
void check_optimizer_expectations(const Json& test_case);

}  // namespace retrograd::conformance
