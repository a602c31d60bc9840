// A recording in words: what it has fixed, and what each run reads again.
#pragma once

#include <string>

#include "tracer/function/function_capture.h"

namespace retrograd::inline v0 {

/// `fixed_because`: why sizes of this function are never symbols; may be empty.
std::string explanation_of(const FunctionCapture& capture, std::string_view fixed_because);

}  // namespace retrograd
