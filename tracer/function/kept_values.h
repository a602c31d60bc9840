// Values of a recording that user code keeps.
//
// Tensors that a function makes while it is recorded are names in a graph, without data. Code that a run calls (a
// hook that looks at a tensor of the function, or registers a hook on it) may have kept some of them, for example as
// a capture of its closure. In a run it would find the names and not the values. Such a function is run eagerly. The
// reference counts show which cells others hold: those with references left after subtracting all references of the
// recording itself. If a holder is unknown here, a function is run eagerly although it could be recorded.
#pragma once

#include "tracer/function/backwards.h"

namespace retrograd::inline v0 {

/// Throws NotRecordable if user code keeps a value of the recording. `tape`: of a differentiable function, else null.
void check_kept(FunctionRecorder& recorder, const FunctionResults& results, const RecordedFunction& recorded,
                const RecordedTape* tape);

}  // namespace retrograd
