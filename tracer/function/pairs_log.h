// The log of a recorded function as it was before its traceable pairs of saved-tensor hooks were inlined.
//
// The function is called once more, for a second recording in which the pairs are called by nodes (PairForm::called).
// It is optimised like the first one, printed, and dropped: it never runs. As in the twin check (twin.h), a recording
// leaves everything outside as it was, and only effects of the function on the host happen once more. So the first
// recording must not have run, and must be the last one that has read live numbers.
#pragma once

#include "tracer/function/sized_function.h"

namespace retrograd::inline v0 {

/// Writes to the topic `trace` the graph of the function, and that of its backward if there is one; or why there are
/// none: an Error of the second recording does not reach the call. `arguments`: of the call that was recorded.
void log_before_inlining(const SizedFunction& recorded, const FunctionBody& body, const Tensors& arguments);

}  // namespace retrograd
