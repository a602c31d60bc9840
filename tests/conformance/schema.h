// The fields of the objects of a manifest. A case is checked completely before it runs, so that an unknown field is a
// failure anywhere, and the code that runs a case only reads what it needs.
#pragma once

#include "tests/conformance/json.h"

namespace retrograd::conformance {

/// Throws BadManifest for a missing or an unknown field in the manifest itself, when it has no cases, and when two have
/// the same name (its cases are not checked otherwise).
void check_manifest(const Json& manifest);

/// Throws BadManifest, with the path of the object, for a missing or an unknown field anywhere in the case,
/// an op or a statement that the format does not have, an attribute that the op does not have.
void check_case(const Json& test_case);

}  // namespace retrograd::conformance
