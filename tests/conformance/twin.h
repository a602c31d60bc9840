// Twins: larger inputs with which a program also runs. Mode dynamic records the program with them, and what was
// recorded then serves the case (main.cc).
#pragma once

#include <functional>

#include "tests/conformance/suite.h"

namespace retrograd::conformance {

/// Inputs with all sizes above 1 doubled, or, if the program does not run with those, only the sizes that are equal to
/// one of them; their values are repeated. Empty if it runs with none of these. `program` throws if it does not run.
Tensors twin_of(const Json& test_case, const Suite& suite,
                const std::function<void(const Tensors&)>& program);

}  // namespace retrograd::conformance
