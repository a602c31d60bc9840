// Every op of the library, for code that processes all of them: the parser, which finds an op by name, the table in the
// docs, tests.
#pragma once

#include <span>

#include "engine/op.h"

namespace retrograd::inline v0::ops {

/// The bookkeeping ops and all families, in a fixed order.
std::span<const OpInfo* const> all_ops();
/// The op of this name, or null.
const OpInfo* find_op(std::string_view name);

}  // namespace retrograd::ops
