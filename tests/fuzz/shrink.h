// Shrinks a failing program while it keeps failing: delta debugging (Zeller, Hildebrandt: Simplifying and Isolating
// Failure-Inducing Input, 2002) over steps, then operands, then sizes. Every list of steps is a program, so nothing has
// to be repaired in between.
#pragma once

#include <functional>
#include <string>

#include "tests/fuzz/program.h"

namespace fuzz {

/// How a program fails, in a word; empty when it does not.
using Fault = std::function<std::string(const Program&)>;

/// The smallest program found that fails like `program`. No single step or operand of it can be removed.
Program shrunk(const Program& program, const Fault& fault);

}  // namespace fuzz
