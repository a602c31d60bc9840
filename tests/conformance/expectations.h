// Whether everything that a case expects will be compared. The comparing code goes over the results of a program; an
// expectation without a result would be skipped silently.
#pragma once

#include "tests/conformance/json.h"

namespace retrograd::conformance {

/// Throws BadManifest for an expectation that no mode checks: lists that are longer or shorter than the outputs, names
/// that are no inputs, a part that belongs to the other form, labels that no op call has, unknown modes. The case has
/// passed check_case.
void check_expectations(const Json& test_case);

/// Whether it is a list of modes, and not empty.
bool are_modes(const Json& modes);

}  // namespace retrograd::conformance
