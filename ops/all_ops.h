// Every op of the library, for what goes through all of them: finding one by name (the parser), the table in the docs, tests.
#pragma once

#include <span>

#include "ir/op.h"

namespace retrograd::ops {

/// The bookkeeping ops and all families, in a fixed order.
std::span<const OpInfo* const> all_ops();
/// The op of this name, or null.
const OpInfo* find_op(std::string_view name);

}  // namespace retrograd::ops
