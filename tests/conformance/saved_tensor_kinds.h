// The pack and unpack pairs of the format: identity, half precision, scaling, float8, copies, and a table of
// integers.
#pragma once

#include "engine/saved_tensor_hooks.h"
#include "tests/conformance/events.h"
#include "tests/conformance/json.h"

namespace retrograd::conformance {

/// The pair of a saved_tensors_hooks statement. It logs a pack and an unpack event for each tensor, of
/// whatever dtype.
RefPtr<SavedTensorHooks> saved_tensor_kind(const Json& statement, EventLog& events);

}  // namespace retrograd::conformance
