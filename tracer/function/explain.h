// A recording in words: what it has fixed, and what each run reads again.
#pragma once

#include <string>

#include "tracer/function/function_capture.h"

namespace retrograd::inline v0 {

/// `fixed_because`: why sizes of this function are never symbols; may be empty.
std::string explanation_of(const FunctionCapture& capture, std::string_view fixed_because);

/// The gradients that a run begins with, a line each; empty if there are none.
std::string given_gradients(const ir::Graph& graph, const std::vector<RecordedFunction::Input>& inputs);

}  // namespace retrograd
