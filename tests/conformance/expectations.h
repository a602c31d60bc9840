// Whether all that a case expects will be compared. The code that compares walks over what a program yields; an expectation that nothing
// yields would be passed over in silence.
#pragma once

#include "tests/conformance/json.h"

namespace retrograd::conformance {

/// Throws BadManifest for an expectation that no mode looks at: lists that are longer or shorter than the outputs, names that are no
/// inputs, a part that belongs to the other form, labels that no op call has, modes that there are not. The case has passed check_case.
void check_expectations(const Json& test_case);

/// Whether it is a list of modes, and not empty.
bool are_modes(const Json& modes);

}  // namespace retrograd::conformance
